from concurrent.futures import ThreadPoolExecutor

from sqlmodel import select

from contract.api import Scope
from service.models import Revision
from tests.service.client import SUITE, Api


def test_a_project_is_made_once_and_listed(api: Api) -> None:
    made = api.ok("POST", "/projects", json={"slug": "acme--kernels", "name": "Acme"})
    assert made["slug"] == "acme--kernels"
    problem = api.problem("POST", "/projects", json={"slug": "acme--kernels"})
    assert (problem["status"], problem["type"], problem["field"]) == (409, "project-exists", "slug")
    assert [project["slug"] for project in api.ok("GET", "/projects")["items"]] == ["acme--kernels", "local"]
    assert api.ok("GET", "/projects/acme--kernels")["name"] == "Acme"
    assert api.problem("GET", "/projects/nowhere")["type"] == "unknown-project"


def test_a_slug_with_a_slash_is_refused_and_the_field_is_named(api: Api) -> None:
    problem = api.problem("POST", "/projects", json={"slug": "acme/kernels"})
    assert (problem["status"], problem["type"], problem["field"]) == (422, "invalid-request", "slug")


def test_appending_to_the_list_of_revisions_is_no_edit_of_the_suite(api: Api) -> None:
    first = api.bring_suite(revisions=["v1_naive"])
    longer = api.bring_suite(revisions=["v1_naive", "v2_blocked"])
    assert longer["digest"] == first["digest"]
    assert longer["suite"]["revisions"] == ["v1_naive", "v2_blocked"]
    edited = api.bring_suite(policy={"allowed_slowdown": 0.5})
    assert edited["digest"] != first["digest"]
    assert api.ok("GET", "/projects/local/kernels/sgemm_cpu/suite") == edited


def test_a_suite_names_the_kernel_that_it_is_brought_for(api: Api) -> None:
    problem = api.problem("PUT", "/projects/local/kernels/other/suite", json=SUITE)
    assert (problem["status"], problem["field"]) == (422, "kernel")


def test_a_kernel_never_changes_its_operator(api: Api) -> None:
    api.bring_suite()
    attention = {
        **SUITE,
        "operator": "attention",
        "dtype": "fp16",
        "cases": [{"dims": {"batch": 1, "heads": 4, "kv_heads": 2, "seqlen": 256, "head_dim": 64, "causal": 1}}],
    }
    problem = api.problem("PUT", "/projects/local/kernels/sgemm_cpu/suite", json=attention)
    assert (problem["status"], problem["type"]) == (409, "operator-changed")


def test_a_suite_with_a_wrong_dimension_is_refused_in_words(api: Api) -> None:
    problem = api.problem(
        "PUT", "/projects/local/kernels/sgemm_cpu/suite", json={**SUITE, "cases": [{"dims": {"m": 1, "n": 1, "q": 1}}]}
    )
    assert problem["status"] == 422
    assert "must give exactly m, n, k" in problem["detail"]


OPERATOR = """DIMS = ("m", "n", "k")
INPUTS = {"a": ("m", "k")}
OUTPUTS = {"c": ("m", "n")}
FLOP = "m * n * k"


def reference(xp, inputs, dims):
    return "tabs\tand \u00b5 stay as they are"


def baseline(torch, inputs, outputs, dims): ...
"""


def test_a_suites_own_operator_reaches_the_node_as_it_was_brought(api: Api, running) -> None:
    brought = api.bring_suite(operator="mine", operator_source=OPERATOR)
    assert brought["suite"]["operator_source"] == OPERATOR
    api.submit("v1")
    [queued] = api.ok("GET", "/evaluations")["items"]
    node = running.api(running.token(Scope.WORKER, node="node-1"))
    job = node.claim(queued["id"])
    assert job.suite.operator_source == OPERATOR
    assert job.suite.digest == brought["digest"] == queued["suite_digest"]
    other = api.bring_suite(operator="mine", operator_source=OPERATOR.replace("stay", "remain"))
    assert other["digest"] != brought["digest"]


def test_an_own_operator_that_can_not_be_read_is_refused_with_its_line(api: Api) -> None:
    suite = {**SUITE, "operator": "mine", "operator_source": OPERATOR.replace("FLOP =", "FLOP = 2 *")}
    problem = api.problem("PUT", "/projects/local/kernels/sgemm_cpu/suite", json=suite)
    assert (problem["status"], problem["field"]) == (422, "operator_source")
    assert "operator.py:4: FLOP must be written out" in problem["detail"]


def test_only_scope_maintain_brings_a_suite(api: Api, running) -> None:
    submitter = running.api(running.token(Scope.SUBMIT))
    problem = submitter.problem("PUT", "/projects/local/kernels/sgemm_cpu/suite", json=SUITE)
    assert (problem["status"], problem["type"]) == (403, "forbidden")


def test_positions_follow_the_list(api: Api, running) -> None:
    api.bring_suite()
    api.submit("v3")

    def position() -> int | None:
        with running.database.read() as session:
            return session.exec(select(Revision)).one().position

    assert position() == 2
    api.bring_suite(revisions=["v1_naive", "v3_packed"])
    assert position() == 1
    api.bring_suite(revisions=["v1_naive"])
    assert position() is None


def test_one_project_made_by_many_at_once_is_made_once(api: Api) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: api.http.post("/projects", json={"slug": "raced"}).status_code, range(6)))
    assert sorted(answers) == [201] + [409] * 5


def test_one_suite_brought_by_many_at_once_is_one(api: Api) -> None:
    path = "/projects/local/kernels/sgemm_cpu/suite"
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: api.http.put(path, json=SUITE).status_code, range(6)))
    assert set(answers) <= {200, 409}
    assert 200 in answers
    assert len({api.ok("GET", path)["digest"]}) == 1
