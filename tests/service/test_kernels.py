from sqlmodel import select

from contract.api import Scope
from contract.statics import FunctionStatics
from service.models import Project
from tests.service.client import CASES
from tests.service.test_history import evaluate
from tests.service.test_imports import bring


def kernels(api):
    return {kernel["name"]: kernel for kernel in api.ok("GET", "/projects/local/kernels")["items"]}


def test_a_project_without_kernels_answers_an_empty_list(api):
    assert kernels(api) == {}


def test_a_kernel_names_its_classes_cases_metrics_and_newest_revision(api, node):
    api.bring_suite(summary="a ladder")
    evaluate(api, node, "v1")
    evaluate(api, node, "v2", 0.9)
    kernel = kernels(api)["sgemm_cpu"]
    assert (kernel["operator"], kernel["summary"]) == ("gemm", "a ladder")
    assert (kernel["device_classes"], kernel["cases"]) == (["cpu"], list(CASES))
    assert kernel["metrics"] == ["time", "throughput"]
    assert (kernel["revisions"], kernel["newest"]) == (2, "v2")


def test_a_kernel_that_was_never_measured_has_cases_and_no_metrics(api):
    api.bring_suite()
    kernel = kernels(api)["sgemm_cpu"]
    assert (kernel["cases"], kernel["metrics"], kernel["newest"]) == (list(CASES), [], None)


def test_imported_kernels_are_listed_by_name_with_what_they_have(api):
    bring(api)
    found = kernels(api)
    assert list(found) == ["attention_b300", "attention_prefill", "hgemm"]
    assert found["attention_b300"]["newest"] == "V36"
    assert found["attention_b300"]["metrics"][:3] == ["time", "throughput", "throughput_over_baseline"]
    assert found["hgemm"]["cases"][0] == "m1024-n1024-k1024"
    assert "" not in found["hgemm"]["cases"]


def test_a_token_of_another_project_sees_nothing(api, running):
    api.ok("POST", "/projects", json={"slug": "other"})
    with running.database.read() as session:
        other = session.exec(select(Project.id).where(Project.slug == "other")).one()
    bound = running.api(running.token(Scope.READ, project_id=other))
    assert bound.problem("GET", "/projects/local/kernels")["type"] == "forbidden"
    assert bound.ok("GET", "/projects/other/kernels") == {"items": [], "next": None}


def test_one_kernel_says_which_line_stands_for_it_on_each_class_and_which_are_of_no_case(api):
    bring(api)
    found = api.ok("GET", "/projects/local/kernels/attention_b300")
    listed = kernels(api)["attention_b300"]
    assert {name: found[name] for name in listed} == listed
    [standing] = (
        one
        for one in api.ok("GET", "/projects/local/overview")["standings"]
        if (one["kernel"], one["device_class"]) == ("attention_b300", "b300")
    )
    assert found["headlines"] == [{name: standing[name] for name in ("device_class", "case", "metric")}]
    assert found["static_metrics"] == {}


def test_the_lines_of_no_case_are_those_of_the_machine_code(api, node):
    api.bring_suite()
    evaluate(api, node, "v1", statics=(FunctionStatics(function="a", architecture="x86-64", code_bytes=100),))
    assert api.ok("GET", "/projects/local/kernels/sgemm_cpu")["static_metrics"] == {"cpu": ["code_bytes"]}
