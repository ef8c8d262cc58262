"""Revisions that leave the mainline take their part of a series with them."""

import pytest
from sqlmodel import select

from contract.report import Environment, Metric
from service.models import Kernel, Revision
from service.reconciler import Reconciler
from service.regressions.leaving import leave_mainline
from service.regressions.tracking import stale_series
from tests.service.client import CASES, Api, case_result, report

QUERY = {"device_class": "cpu", "case": CASES[0], "metric": "time"}


def changes(api: Api) -> list[tuple[str, str]]:
    found = api.ok("GET", "/projects/local/kernels/sgemm_cpu/changes", params=QUERY)["changes"]
    return [(each["kind"], each["revision"]["label"]) for each in found]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_step_of_what_left_is_none_of_the_series_and_no_regression(api: Api, node: Api, running) -> None:
    api.bring_suite(revisions=[])
    times = [100.0 + 0.05 * (place % 3) for place in range(12)] + [106.0 + 0.05 * (place % 3) for place in range(8)]
    for place, time in enumerate(times):
        metrics = (Metric(name="time", unit="us", value=time, better="lower"),)
        cases = [case_result(case, metrics=metrics, base_skipped="as if") for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        node.finish(node.claim(evaluation), report(*cases, environment=Environment(device="a CPU", driver="1")))
    assert changes(api) == [("step", "r12")]
    [regression] = api.ok("GET", "/projects/local/regressions")["items"]
    assert regression["state"] == "new"

    with running.database.write() as session:
        kernel = session.exec(select(Kernel)).one()
        gone = [row for row in session.exec(select(Revision)).all() if int(row.label[1:]) >= 12]
        leave_mainline(session, kernel, gone, why="pushed away")
    services = running.services
    Reconciler(database=services.database, dispatcher=services.dispatcher, settings=running.settings).reconcile()
    with running.database.read() as session:
        assert stale_series(session, limit=10) == []
    assert changes(api) == []
    [regression] = api.ok("GET", "/projects/local/regressions")["items"]
    assert (regression["state"], regression["reason"]) == ("noise", "r12 was pushed away")
    [standing] = api.ok("GET", "/projects/local/overview")["standings"]
    assert standing["label"] == "r11"
