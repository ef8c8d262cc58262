from pathlib import Path

import pytest
from sqlmodel import select

from contract.api import Scope
from contract.outcomes import Reason
from contract.regressions import REGRESSION_SUCCESSORS, RegressionState
from service.models import Evaluation, Project, Revision
from service.regressions.watching import observe, observe_revision
from tests.service.client import CASES, Api, case_result, report

PUBLISHED = (Path(__file__).parents[2] / "data" / "published_history.csv").read_text()
FIRST, SECOND = CASES
COMMIT = "a" * 40


def measure(api: Api, node: Api, label: str, *ratios, base=None, **changes):
    """Submit, claim, report; `ratios`: of the two cases against the base, None where there is none."""
    cases = [case_result(case, ratio=ratio) for case, ratio in zip(CASES, ratios or (None, None), strict=True)]
    [evaluation] = api.submit(label, **({"base": base} if base else {}), **changes)["evaluations"]
    node.finish(node.claim(evaluation), report(*cases))
    return api.evaluation(evaluation)


def listed(api: Api, **query):
    return api.ok("GET", "/projects/local/regressions", params=query)["items"]


def labels(spots):
    return [spot["label"] for spot in spots]


@pytest.fixture
def suite(api: Api):
    return api.bring_suite(revisions=[])


def test_two_slower_cases_of_one_revision_are_one_regression(api: Api, node: Api, suite):
    measure(api, node, "v1")
    evaluation = measure(api, node, "v2", 1.12, 1.05)
    [found] = listed(api)
    assert (found["state"], found["direction"]) == ("new", "slower")
    assert [(case["case"], case["evidence"]) for case in found["cases"]] == [
        (FIRST, "side_by_side"),
        (SECOND, "side_by_side"),
    ]
    assert found["cases"][0]["evaluation"] == evaluation["id"]
    assert found["worst_ratio"] == pytest.approx(1.12, abs=0.001)
    assert (found["revision"]["label"], found["after"]["label"], labels(found["suspects"])) == ("v2", "v1", ["v2"])
    assert found["sentence"].startswith("sgemm_cpu v2 is 12.0")
    assert "slower than v1 at" in found["sentence"]
    assert "and 1 more case" in found["sentence"]
    assert api.ok("GET", f"/regressions/{found['id']}") == found


def test_a_brief_list_says_the_same_and_shows_the_most_affected_case_alone(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.2, 1.05)
    [whole] = listed(api)
    [brief] = listed(api, brief=True)
    assert (len(whole["cases"]), whole["affected"], brief["cases"]) == (2, 2, whole["cases"][:1])
    assert {**brief, "cases": None} == {**whole, "cases": None}
    assert brief["cases"][0]["case"] == CASES[0]


def test_both_device_classes_of_one_commit_are_one_regression(api: Api, node: Api, running, suite):
    api.bring_suite(revisions=[], device_classes=["cpu", "h200"])
    other = running.api(running.token(Scope.WORKER, node="gpu-1"))

    def both(label, ratio):
        for evaluation in api.submit(label, commit=COMMIT if label == "v2" else None)["evaluations"]:
            device_class = api.evaluation(evaluation)["device_class"]
            worker = node if device_class == "cpu" else other
            job = worker.claim(
                evaluation, name="node-1" if device_class == "cpu" else "gpu-1", device_class=device_class
            )
            cases = [case_result(case, ratio=ratio) for case in CASES]
            worker.finish(job, report(*cases, device_class=device_class))

    both("v1", None)
    both("v2", 1.05)
    [found] = listed(api)
    assert sorted(found["device_classes"]) == ["cpu", "h200"]
    assert len(found["cases"]) == 4
    assert listed(api, device_class="h200") == [found]
    assert listed(api, device_class="b300") == []
    assert listed(api, kernel="sgemm_cpu") == [found]
    assert listed(api, kernel="other") == []


def test_two_kernels_that_one_commit_slows_down_are_one_regression(api: Api, node: Api, suite):
    api.bring_suite(revisions=[], kernel="sgemm_two")
    for label, ratios, commit in (("v1", (), None), ("v2", (1.05, 1.05), COMMIT)):
        measure(api, node, label, *ratios, commit=commit)
        measure(api, node, label, *ratios, commit=commit, kernel="sgemm_two")
    [found] = listed(api)
    assert sorted(found["kernels"]) == ["sgemm_cpu", "sgemm_two"]


def test_what_is_the_same_or_beside_the_mainline_is_no_regression(api: Api, node: Api, running, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.0, 1.001)
    contributor = running.api(running.token(Scope.SUBMIT))
    [evaluation] = contributor.submit("v3", branch="topic")["evaluations"]
    slow = [case_result(case, ratio=1.2) for case in CASES]
    node.finish(node.claim(evaluation), report(*slow))
    assert api.evaluation(evaluation)["outcome"] == "slower"
    assert listed(api) == []
    with running.database.write() as session:
        revision = session.exec(select(Revision).where(Revision.label == "v3")).one()
        revision.mainline = True
        observe_revision(session, revision)
    assert [found["revision"]["label"] for found in listed(api)] == ["v3"]


def test_an_improvement_is_listed_apart(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 0.76, 1.0)
    assert listed(api) == []
    [found] = listed(api, direction="faster")
    assert "24 % faster than v1" in found["sentence"].replace("24.00", "24").replace("24.0", "24")
    assert [case["case"] for case in found["cases"]] == [FIRST]


def test_a_later_revision_that_is_back_at_the_level_fixes_it(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.10, 1.0)
    measure(api, node, "v3", 0.97, 1.0)
    [found] = listed(api)
    assert found["state"] == "new"
    assert found["cases"][0]["now"] == pytest.approx(1.067, abs=0.001)
    measure(api, node, "v4", 0.93, 1.0)
    [found] = listed(api)
    assert (found["state"], found["fixed_by"]["label"], found["kept"]) == ("fixed", "v4", True)
    assert (found["who"], found["reason"]) == ("kernelgate", "v4 is back at the level before")
    assert [event["state"] for event in found["events"]] == ["new", "fixed"]


def test_it_is_fixed_when_all_its_cases_are(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.10, 1.10)
    measure(api, node, "v3", 0.90, 1.0)
    [found] = listed(api)
    assert found["state"] == "new"
    assert [case["fixed_by"] is not None for case in sorted(found["cases"], key=lambda case: case["case"])] == [
        False,
        True,
    ]
    measure(api, node, "v4", 1.0, 0.90)
    assert [each["state"] for each in listed(api)] == ["fixed"]


def test_reports_of_the_same_slowdown_over_an_older_base_are_no_news(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.10, 1.0)
    measure(api, node, "v3", 1.10, 1.0, base="v1")
    assert [found["revision"]["label"] for found in listed(api)] == ["v2"]


def test_measured_again_and_not_slower_it_was_noise(api: Api, node: Api, suite):
    measure(api, node, "v1")
    slow = measure(api, node, "v2", 1.006, 1.0)
    assert slow["outcome"] == "slower"
    [found] = listed(api)
    again = api.ok("POST", "/evaluations", json={"revision": slow["revision"]["id"], "device_class": "cpu"})
    more = [case_result(FIRST, ratio=1.0, count=16), case_result(SECOND, ratio=1.0)]
    node.finish(node.claim(again["id"]), report(*more))
    assert api.evaluation(again["id"])["cases"][0]["judgement"]["verdict"] == "same"
    [after] = listed(api)
    assert (after["id"], after["state"], after["who"]) == (found["id"], "noise", "kernelgate")
    assert "measured again with more evidence" in after["reason"]


def test_unmeasured_revisions_between_are_suspects(api: Api, node: Api, suite):
    measure(api, node, "v1")
    [broken] = api.submit("v2")["evaluations"]
    wrong = report().model_copy(
        update={"checks": (report().checks[0].model_copy(update={"passed": False, "reason": Reason.WRONG_VALUES}),)}
    )
    node.finish(node.claim(broken), wrong)
    assert api.evaluation(broken)["outcome"] == "incorrect"
    measure(api, node, "v3", 1.08, 1.0)
    [found] = listed(api)
    assert (found["after"]["label"], labels(found["suspects"])) == ("v1", ["v2", "v3"])
    assert "v2 was not measured and may be the cause" in found["sentence"]


def test_an_allowance_of_the_suite_makes_it_expected(api: Api, node: Api, suite):
    allowance = {"revision": "v2", "base": "v1", "case": FIRST, "device_class": "cpu", "reason": "thin k"}
    api.bring_suite(revisions=[], allowances=[allowance])
    measure(api, node, "v1")
    measure(api, node, "v2", 1.5, 1.0)
    [found] = listed(api)
    assert (found["state"], found["reason"]) == ("expected", "allowed by the suite: thin k")


def test_one_more_case_that_nothing_forgives_opens_what_was_expected(api: Api, node: Api, suite):
    allowance = {"revision": "v2", "base": "v1", "case": FIRST, "device_class": "cpu", "reason": "thin k"}
    api.bring_suite(revisions=[], allowances=[allowance])
    measure(api, node, "v1")
    measure(api, node, "v2", 1.5, 1.2)
    assert [found["state"] for found in listed(api)] == ["new"]


def test_observing_twice_changes_nothing(api: Api, node: Api, running, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.12, 0.9)
    before = listed(api), listed(api, direction="faster")
    with running.database.write() as session:
        for evaluation in session.exec(select(Evaluation)).all():
            observe(session, evaluation)
            observe(session, evaluation)
    assert (listed(api), listed(api, direction="faster")) == before


# ------------------------------------------------------------ states


def test_acknowledging_needs_a_reason_and_the_scope_and_says_who(api: Api, node: Api, running, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.12, 1.0)
    [found] = listed(api)
    path = f"/regressions/{found['id']}"
    wanted = {"state": "acknowledged", "reason": "the price of a right epilogue", "who": "ada"}
    reader = running.api(running.token(Scope.SUBMIT))
    assert reader.problem("PATCH", path, json=wanted)["type"] == "forbidden"
    assert api.problem("PATCH", path, json={"state": "acknowledged", "reason": ""})["type"] == "invalid-request"
    assert api.problem("PATCH", path, json={"state": "acknowledged", "reason": " \n"})["status"] == 422
    maintainer = running.api(running.token(Scope.MAINTAIN, note="release team"))
    answer = maintainer.ok("PATCH", path, json=wanted)
    assert (answer["state"], answer["reason"]) == ("acknowledged", "the price of a right epilogue")
    assert answer["who"].startswith("ada, release team (tok_")
    assert [event["state"] for event in answer["events"]] == ["new", "acknowledged"]
    assert listed(api, state="new") == []
    assert listed(api, state="acknowledged") == [answer]


def test_only_successors_are_reached(api: Api, node: Api, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.12, 1.0)
    path = f"/regressions/{listed(api)[0]['id']}"
    api.ok("PATCH", path, json={"state": "noise", "reason": "the fan was broken"})
    problem = api.problem("PATCH", path, json={"state": "expected", "reason": "no"})
    assert (problem["status"], problem["type"]) == (409, "state-not-reachable")
    assert "noise, which is never followed by expected (but by new)" in problem["detail"]
    assert api.ok("PATCH", path, json={"state": "new", "reason": "it was not the fan"})["state"] == "new"


def test_every_state_has_successors_and_none_follows_itself():
    assert set(REGRESSION_SUCCESSORS) == set(RegressionState)
    assert all(state not in after and after for state, after in REGRESSION_SUCCESSORS.items())


def test_what_a_person_said_of_it_is_not_overwritten_by_the_same_report(api: Api, node: Api, running, suite):
    measure(api, node, "v1")
    evaluation = measure(api, node, "v2", 1.12, 1.0)
    path = f"/regressions/{listed(api)[0]['id']}"
    noise = api.ok("PATCH", path, json={"state": "noise", "reason": "a broken fan"})
    with running.database.write() as session:
        observe(session, session.get_one(Evaluation, evaluation["id"]))
    assert listed(api) == [noise]


def test_pages_follow_each_other_newest_first(api: Api, node: Api, suite):
    measure(api, node, "v1")
    for number in range(2, 7):
        measure(api, node, f"v{number}", 1.1, 1.0)
    seen, after = [], None
    while True:
        page = api.ok("GET", "/regressions", params={"limit": 2, **({"after": after} if after else {})})
        seen += [found["revision"]["label"] for found in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == ["v6", "v5", "v4", "v3", "v2"]


def test_another_projects_token_sees_none_of_it(api: Api, node: Api, running, suite):
    measure(api, node, "v1")
    measure(api, node, "v2", 1.12, 1.0)
    project = api.ok("POST", "/projects", json={"slug": "other"})
    assert project["slug"] == "other"
    with running.database.read() as session:
        other = session.exec(select(Project).where(Project.slug == "other")).one()
    stranger = running.api(running.token(Scope.MAINTAIN, project_id=other.id))
    assert stranger.ok("GET", "/regressions")["items"] == []
    path = f"/regressions/{listed(api)[0]['id']}"
    assert stranger.problem("GET", path)["type"] == "forbidden"
    assert stranger.problem("PATCH", path, json={"state": "noise", "reason": "x"})["type"] == "forbidden"
    assert stranger.problem("GET", "/projects/local/regressions")["type"] == "forbidden"
    assert api.problem("GET", "/regressions/reg_nothing")["type"] == "unknown-regression"


# ------------------------------------------------------------ imported histories


def test_the_published_slower_revisions_show_and_those_that_were_not_kept_are_fixed(api: Api):
    body = {"csv": PUBLISHED, "provenance": "a table"}
    api.ok("POST", "/projects/local/imports", json=body)
    found = {each["revision"]["label"]: each for each in listed(api, kernel="attention_b300")}
    assert {label: each["state"] for label, each in found.items()} == {
        "V22": "fixed",
        "V32": "fixed",
        "V34": "fixed",
        "V36": "new",
    }
    assert [found[label]["kept"] for label in ("V22", "V32", "V34", "V36")] == [False, False, False, None]
    assert found["V32"]["reason"] == "not kept: V33 goes on from V30"
    assert found["V34"]["cases"][0]["evidence"] == "published"
    assert len(listed(api, kernel="attention_b300", direction="faster")) == 9
    assert [each["revision"]["label"] for each in listed(api, kernel="hgemm")] == ["v4"]
    api.ok("POST", "/projects/local/imports", json=body)
    assert {each["revision"]["label"]: each for each in listed(api, kernel="attention_b300")} == found


def test_a_history_measured_elsewhere_is_no_suspect_of_another(api: Api):
    header = "kernel,device_class,label,base,case,metric,value,unit,note\n"
    tables = {
        "one card": "k,h200,a0,,c1,time,10,us,\nk,h200,a1,a0,c1,time,10,us,\n",
        "another card": "k,b300,b0,,c1,time,10,us,\nk,b300,b1,b0,c1,time,12,us,\n",
    }
    for provenance, lines in tables.items():
        api.ok("POST", "/projects/local/imports", json={"csv": header + lines, "provenance": provenance})
    [found] = listed(api)
    assert labels(found["suspects"]) == ["b1"]
    assert "not measured" not in found["sentence"]
