import pytest
from sqlmodel import select

from contract.report import Failure
from service.models import Project
from tests.service.client import CASES, Api, case_result, report

COMMIT, OTHER = "a" * 40, "b" * 40


@pytest.fixture(autouse=True)
def suite(api: Api):
    return api.bring_suite(revisions=[])


def bring(api: Api, node: Api, label: str, ratio=None, *, outcome=None, **changes):
    [evaluation] = api.submit(label, **changes)["evaluations"]
    job = node.claim(evaluation)
    if outcome:
        node.finish(job, report(failure=Failure(reason=outcome, stage="measure", message="no card")))
    else:
        node.finish(job, report(*(case_result(case, ratio=ratio) for case in CASES)))
    return evaluation


def gate(api: Api, commit=COMMIT):
    return api.ok("GET", f"/projects/local/commits/{commit}/gate")


def test_a_good_commit_is_a_success_and_says_so(api: Api, node: Api):
    bring(api, node, "v1")
    bring(api, node, "v2", 1.0, commit=COMMIT)
    found = gate(api)
    assert (found["commit"], found["kernels"]) == (COMMIT, ["sgemm_cpu"])
    assert found["answer"]["conclusion"] == "success"
    assert found["answer"]["sentence"] == "sgemm_cpu on cpu: nothing is slower than allowed (0.5 %) in 2 comparisons"


def test_a_slower_commit_fails_with_its_worst_case_first(api: Api, node: Api):
    bring(api, node, "v1")
    evaluation = bring(api, node, "v2", 1.12, commit=COMMIT)
    answer = gate(api)["answer"]
    assert answer["conclusion"] == "failure"
    assert answer["sentence"].startswith("sgemm_cpu v2 on cpu at m=")
    assert answer["sentence"].endswith("% slower (allowed 0.5 %), and 1 more")
    assert {row["evaluation"] for row in answer["rows"]} == {evaluation}


def test_the_policy_of_the_suite_decides_and_a_node_that_failed_is_no_success(api: Api, node: Api):
    bring(api, node, "v1", commit=COMMIT, outcome="toolchain_missing")
    answer = gate(api)["answer"]
    assert answer["conclusion"] == "not_measured"
    assert "toolchain missing" in answer["sentence"]
    bring(api, node, "v1", 1.0, commit=OTHER)
    api.bring_suite(revisions=[], policy={"required_device_classes": ["h200"]}, device_classes=["cpu", "h200"])
    assert gate(api, OTHER)["answer"]["sentence"] == "sgemm_cpu on h200: required, and nothing was measured there"


def test_what_runs_is_pending(api: Api):
    api.submit("v1", commit=COMMIT)
    assert gate(api)["answer"]["conclusion"] == "pending"


def test_slow_boil_is_told_from_the_chain_of_comparisons(api: Api, node: Api):
    """Three times 0.4 %, each allowed; the anchor says 1 % in all."""
    api.bring_suite(revisions=[], policy={"anchor": {"revision": "v1", "allowed_slowdown": 0.01}})
    bring(api, node, "v1")
    for number in (2, 3):
        bring(api, node, f"v{number}", 1.004, commit=str(number) * 40)
        assert gate(api, str(number) * 40)["answer"]["conclusion"] == "success"
    bring(api, node, "v4", 1.004, commit="4" * 40)
    answer = gate(api, "4" * 40)["answer"]
    assert answer["conclusion"] == "failure"
    assert "slower than the anchor v1 (1 % allowed in all)" in answer["sentence"]
    assert answer["rows"][0]["ratio"] == pytest.approx(1.004**3, abs=0.0005)


def test_an_allowed_slowdown_of_the_class_judges_and_shows(api: Api, node: Api):
    api.bring_suite(revisions=[], policy={"allowed_slowdown_on": {"cpu": 0.2}})
    bring(api, node, "v1")
    bring(api, node, "v2", 1.12, commit=COMMIT)
    answer = gate(api)["answer"]
    assert answer["conclusion"] == "success"
    assert {row["allowed_slowdown"] for row in answer["rows"]} == {0.2}


def test_a_commit_that_nobody_asked_for_is_unknown_and_not_a_success(api: Api):
    problem = api.problem("GET", f"/projects/local/commits/{OTHER}/gate")
    assert (problem["status"], problem["type"]) == (404, "unknown-commit")
    assert api.problem("GET", "/projects/local/commits/main/gate")["status"] == 422


def test_a_commit_of_which_github_said_that_it_touches_no_kernel_is_a_success(api: Api, running):
    from service.github.plans import Plan  # noqa: PLC0415
    from service.github.tables import GithubGate, GithubRepository  # noqa: PLC0415

    with running.database.write() as session:
        project = session.exec(select(Project).where(Project.slug == "local")).one()
        session.add(GithubRepository(id=7, full_name="me/k", installation_id=1, project_id=project.id))
        session.flush()
        plan = Plan(base_sha="b" * 40).model_dump(mode="json")
        session.add(GithubGate(repository_id=7, kind="pull_request", head_sha=COMMIT, state="done", plan=plan))
    answer = gate(api)["answer"]
    assert (answer["conclusion"], answer["sentence"]) == ("success", "no kernel is touched: nothing to judge")


def test_a_slowdown_is_accepted_over_the_base_that_it_was_shown_with_and_over_no_other(api: Api, node: Api, running):
    from service.github.tables import GithubAcceptance  # noqa: PLC0415

    bring(api, node, "v1")
    shown = api.ok("GET", f"/evaluations/{bring(api, node, 'v2', 1.12, commit=COMMIT)}")

    def accept(base_digest: str) -> None:
        with running.database.write() as session:
            project = session.exec(select(Project).where(Project.slug == "local")).one()
            session.add(
                GithubAcceptance(
                    project_id=project.id,
                    kernel="sgemm_cpu",
                    subject="slowdown",
                    digest=shown["revision"]["digest"],
                    base_digest=base_digest,
                    cases=[f"cpu {case}" for case in CASES],
                    who="ada",
                )
            )

    accept("f" * 64)
    assert gate(api)["answer"]["conclusion"] == "failure"
    accept(shown["base"]["digest"])
    assert gate(api)["answer"]["conclusion"] == "success"
