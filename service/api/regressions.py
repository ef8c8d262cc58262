"""What got slower, and what people say of it."""

from typing import Annotated

from fastapi import APIRouter, Body, Query
from sqlmodel import select

from contract.devices import DeviceClass
from contract.regressions import (
    ChangesOut,
    Direction,
    RegressionIn,
    RegressionOut,
    RegressionPage,
    RegressionState,
)
from service.auth import Maintainer, Reader
from service.database import DatabaseDep
from service.find import kernel_by_name, project_by_slug
from service.models import Series
from service.pages import After, Limit
from service.problems import ProblemError
from service.regressions import listing

router = APIRouter(tags=["regressions"])

_States = Annotated[list[RegressionState] | None, Query(description="repeat for several; by default all")]
_Brief = Annotated[bool, Query(description="of the affected cases the most affected alone")]
_Direction = Annotated[Direction, Query(description="`faster` lists the improvements")]
_EXAMPLE = {"state": "acknowledged", "reason": "the price of the new epilogue; back in #482", "who": "ada"}


@router.get("/regressions")
def list_regressions(
    *,
    database: DatabaseDep,
    principal: Reader,
    project: str | None = None,
    state: _States = None,
    kernel: str | None = None,
    device_class: DeviceClass | None = None,
    direction: _Direction = "slower",
    after: After = None,
    limit: Limit = 50,
    brief: _Brief = False,
) -> RegressionPage:
    """One object a cause, whatever cases and classes it touches, newest first."""
    with database.read() as session:
        items, following = listing.list_regressions(
            session,
            principal=principal,
            project=project,
            states_wanted=state or (),
            kernel=kernel,
            device_class=device_class,
            direction=direction,
            after=after,
            limit=limit,
            brief=brief,
        )
    return RegressionPage(items=tuple(items), next=following)


@router.get("/projects/{project}/regressions")
def list_project_regressions(
    project: str,
    *,
    database: DatabaseDep,
    principal: Reader,
    state: _States = None,
    kernel: str | None = None,
    device_class: DeviceClass | None = None,
    direction: _Direction = "slower",
    after: After = None,
    limit: Limit = 50,
    brief: _Brief = False,
) -> RegressionPage:
    """The same of one project."""
    return list_regressions(
        database=database,
        principal=principal,
        project=project,
        state=state,
        kernel=kernel,
        device_class=device_class,
        direction=direction,
        after=after,
        limit=limit,
        brief=brief,
    )


@router.get("/regressions/{regression_id}")
def get_regression(regression_id: str, database: DatabaseDep, principal: Reader) -> RegressionOut:
    """One regression, with every case, suspect and state that it went through."""
    with database.read() as session:
        row = listing.regression_by_id(session, principal=principal, regression_id=regression_id)
        return listing.regression_outs(session, [row])[0]


@router.patch("/regressions/{regression_id}")
def change_regression(
    regression_id: str,
    wanted: Annotated[RegressionIn, Body(examples=[_EXAMPLE])],
    database: DatabaseDep,
    principal: Maintainer,
) -> RegressionOut:
    """Say what it is: acknowledged, expected, noise, fixed, or new again; with the reason. A later measurement that is
    back at the level before makes it `fixed` by itself."""
    with database.write() as session:
        return listing.change_state(session, principal=principal, regression_id=regression_id, wanted=wanted)


@router.get("/projects/{project}/kernels/{kernel}/changes")
def list_changes(
    project: str,
    kernel: str,
    database: DatabaseDep,
    principal: Reader,
    *,
    device_class: DeviceClass,
    case: Annotated[str, Query(max_length=200)],
    metric: Annotated[str, Query(max_length=63)] = "throughput_over_baseline",
) -> ChangesOut:
    """Steps, outliers and new segments of one series of the mainline. Followed are the ratio to the baseline
    (`throughput_over_baseline`) and the absolute value (`time`, else `throughput`); what the machine code says (the
    empty case) begins a new segment where another toolchain built it."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        row = kernel_by_name(session, project=owner, name=kernel)
        series = session.exec(
            select(Series).where(
                Series.kernel_id == row.id,
                Series.device_class == device_class,
                Series.case == case,
                Series.metric == metric,
            )
        ).first()
        if series is None:
            detail = f"{kernel} has no values of {metric} at {case!r} on {device_class.value}"
            raise ProblemError(404, "unknown-series", detail)
        return listing.changes_out(session, project=owner, kernel=row, series=series)
