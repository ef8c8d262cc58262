"""A suite that brings its operator, through the real service and worker: who may bring it, and where it runs."""

from __future__ import annotations

from typing import Any

from contract.api import Scope
from service.auth import issue_token
from tests.e2e.revisions import files, source, suite
from tests.e2e.stack import Stack

OPERATOR = """
DIMS = ("m", "n", "k")
INPUTS = {"a": ("m", "k"), "b": ("k", "n")}
OUTPUTS = {"c": ("m", "n")}
FLOP = "2 * m * n * k"
TERMS = "k"
BASELINE = "matmul"
BASELINE_WRITES = True


def reference(xp, inputs, dims):
    return inputs[0] @ inputs[1]


def magnitude(xp, inputs, dims):
    return abs(inputs[0]) @ abs(inputs[1])


def baseline(torch, inputs, outputs, dims):
    torch.matmul(*inputs, out=outputs[0])
"""
OWN: dict[str, Any] = {"operator": "product", "operator_source": OPERATOR}
LAX = OPERATOR.replace("inputs[0] @ inputs[1]\n\n\ndef magnitude", "inputs[0] @ inputs[1] + 1\n\n\ndef magnitude")

# Of the same name and with the same dimensions; but b comes transposed.
OTHER = OPERATOR.replace('("k", "n")', '("n", "k")').replace("inputs[1]", "inputs[1].T")
OTHER = OTHER.replace("torch.matmul(*inputs,", "torch.matmul(inputs[0], inputs[1].T,")
PLAIN = files(source(before="// in two projects"))
TRANSPOSED = files(PLAIN["gemm.cpp"].replace("b[p * n + j]", "b[j * k + p]"), label="v2")


def test_it_judges_the_revisions_of_its_kernel_and_no_bundle_brings_another(stack: Stack) -> None:
    kernel = stack.kernel(**OWN)
    passed = stack.passed(stack.submit(kernel=kernel))
    assert passed["cases"][0]["baseline"].startswith("torch ")
    assert {check["family"] for check in passed["checks"]} == {"normal", "uniform", "heavy_tailed", "signed_zeros"}
    assert LAX != OPERATOR
    wrong = files(source("for (int64_t i = 0; i < m * call->in[1].shape[1]; ++i) c[i] += 1.0f;"), label="v2")
    ended = stack.ended(stack.submit({**wrong, "operator.py": LAX}, kernel=kernel))
    assert (ended["outcome"], ended["reason"]) == ("incorrect", "wrong_values")


def test_whoever_may_only_submit_brings_none(stack: Stack) -> None:
    kernel = stack.kernel(**OWN)
    with stack.database.write() as session:
        submitter = stack.client(issue_token(session, scope=Scope.SUBMIT)[1])
    changed = suite(kernel, **{**OWN, "operator_source": LAX})
    problem = submitter.problem("PUT", f"/projects/local/kernels/{kernel}/suite", json=changed)
    assert problem["status"] == 403
    kept = stack.api.ok("GET", f"/projects/local/kernels/{kernel}/suite")["suite"]
    assert kept["operator_source"] == OPERATOR


def test_a_node_refuses_those_of_other_projects_and_blames_no_kernel(stack: Stack) -> None:
    stack.api.ok("POST", "/projects", json={"slug": "strangers"})
    stack.api.ok("PUT", "/projects/strangers/kernels/theirs/suite", json=suite("theirs", **OWN))
    ended = stack.ended(stack.submit(kernel="theirs", project="strangers"))
    assert (ended["outcome"], ended["reason"]) == ("infrastructure_error", "operator_refused")
    assert "does not name the project strangers" in ended["message"]


def test_two_projects_have_an_operator_of_one_name_and_each_judges_by_its_own(stack: Stack) -> None:
    """One node, one cache, the same bundles, in turn."""
    stack.api.ok("POST", "/projects", json={"slug": "neighbours"})
    for project, text in (("local", OPERATOR), ("neighbours", OTHER)):
        own = suite("shared", **{**OWN, "operator_source": text})
        stack.api.ok("PUT", f"/projects/{project}/kernels/shared/suite", json=own)
    right = {"local": PLAIN, "neighbours": TRANSPOSED}
    cached = []
    for bundle in (PLAIN, TRANSPOSED):
        for project, own_bundle in right.items():
            ended = stack.ended(stack.submit(bundle, kernel="shared", project=project))
            if bundle is own_bundle:
                assert (ended["outcome"], ended["reason"]) == ("passed", None), (project, ended["message"])
            else:
                assert (ended["outcome"], ended["reason"]) == ("incorrect", "wrong_values"), project
            cached += [stage["cached"] for stage in ended["stages"] if stage["stage"] == "build"]
    assert cached == [False, True, False, True]
