"""What is wrong with a report: about something else (refused), or silent about what it must say (an outcome)."""

from collections.abc import Iterator, Mapping

from contract.outcomes import Reason, Stage
from contract.report import MAX_MESSAGE, Failure, Report
from contract.suite import Suite
from service.models import Evaluation
from service.problems import ProblemError


def check_subject(report: Report, *, evaluation: Evaluation, suite: Suite) -> None:
    """Raises 422 `report-mismatch` where the report isn't about this evaluation, or can't be kept."""
    if report.protocol_version != evaluation.protocol_version:
        raise _mismatch("protocol_version", f"{report.protocol_version} isn't this evaluation's")
    if report.device_class != evaluation.device_class:
        raise _mismatch("device_class", f"{report.device_class.value} isn't this evaluation's")
    known = {case.id for case in suite.cases}
    names = [case.case for case in report.cases]
    for name in names:
        if name not in known:
            raise _mismatch("cases", f"{name} is no case of the suite")
    if len(set(names)) != len(names):
        raise _mismatch("cases", "a case is reported twice")
    for case in report.cases:
        metrics = [metric.name for metric in case.metrics]
        if len(set(metrics)) != len(metrics):
            raise _mismatch("cases", f"{case.case}: a metric is reported twice")


def hidden_failure(
    report: Report, *, suite: Suite, build_only: bool, units: Mapping[tuple[str, str], str]
) -> Failure | None:
    """Why a report that names no failure is one all the same. `units`: of the kernel's series, by case and metric."""
    return next(_hidden_failures(report, suite=suite, build_only=build_only, units=units), None)


def _hidden_failures(
    report: Report, *, suite: Suite, build_only: bool, units: Mapping[tuple[str, str], str]
) -> Iterator[Failure]:
    for check in report.checks:
        if not check.passed:
            message = check.message or f"{check.family}: the check failed"
            reason = check.reason or Reason.WRONG_VALUES
            yield Failure(reason=reason, stage=Stage.VERIFY, message=message, case=check.case)
    yield from _other_units(report, units)
    if report.built_only:
        return
    if build_only:
        yield _internal("a build was asked for, and more than a build was reported")
    missing = [case.id for case in suite.cases if case.id not in {each.case for each in report.cases}]
    if missing:
        yield _internal(f"nothing was reported of {'; '.join(missing)}")
    if all(case.skipped is not None for case in report.cases):
        why = "; ".join(f"{case.case}: {case.skipped}" for case in report.cases)
        message = f"it supports no case of the suite ({why})"[:MAX_MESSAGE]
        yield Failure(reason=Reason.CASE_REFUSED, stage=Stage.VERIFY, message=message)
    if not report.checks:
        yield _internal("no verification was reported")


def _other_units(report: Report, units: Mapping[tuple[str, str], str]) -> Iterator[Failure]:
    for case in report.cases:
        for metric in case.metrics:
            unit = units.get((case.case, metric.name), metric.unit)
            if unit != metric.unit:
                yield _internal(f"{case.case}: {metric.name} is in {metric.unit}, while its history is in {unit}")


def _internal(message: str) -> Failure:
    return Failure(reason=Reason.INTERNAL_ERROR, stage=Stage.REPORT, message=message[:MAX_MESSAGE])


def _mismatch(field: str, detail: str) -> ProblemError:
    return ProblemError(422, "report-mismatch", f"{field}: {detail}", field=field)
