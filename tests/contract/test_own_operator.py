"""operator.py is read, not run: what it says of itself, and what is refused."""

from __future__ import annotations

import time

import pytest

from contract import expressions
from contract.manifest import ManifestError, check_constraints, parse_manifest, parse_suite
from contract.own_operator import MAX_CHARACTERS, OwnOperatorError, read_signature
from contract.suite import Suite
from tests.kernels.shipped import KERNELS, suite_of

OPERATOR = """
DIMS = ("rows", "columns")
FLAGS = ("halved",)
INPUTS = {"x": ("rows", "columns")}
OUTPUTS = {"y": ("rows", "columns // 2")}
FLOP = "rows * columns"
BY_ROWS = ("x",)


def reference(xp, inputs, dims):
    raise AssertionError("this is never run to read the file")


def baseline(torch, inputs, outputs, dims): ...
"""
SUITE = """
kernel = "folded"
operator = "fold"
dtype = "fp32"
device_classes = ["cpu"]
[[cases]]
dims = { halved = 1, columns = 8, rows = 3 }
"""


def suite(operator: str | None = OPERATOR, text: str = SUITE) -> Suite:
    return parse_suite(text, operator=operator)


def test_its_dimensions_order_a_case_and_its_tensors_follow_from_them() -> None:
    read = suite()
    assert read.cases[0].id == "rows=3,columns=8,halved=1"
    signature = read.signature
    assert signature is not None
    tensors = signature.tensors(read.cases[0].dims, "fp32")
    assert [(each.name, each.role.value, each.shape, each.dtype) for each in tensors] == [
        ("x", "input", (3, 8), "fp32"),
        ("y", "output", (3, 4), "fp32"),
    ]
    assert signature.count(signature.flop, read.cases[0].dims) == 24


def test_reading_runs_none_of_it() -> None:
    assert suite(f"{OPERATOR}\nraise SystemExit(3)\n").signature == suite().signature


def test_another_operator_is_another_suite() -> None:
    assert suite().digest == suite(OPERATOR.replace("\n", "\r\n")).digest
    assert suite(f"{OPERATOR}# changed\n").digest != suite().digest


def test_a_suite_survives_the_way_through_json() -> None:
    assert Suite.model_validate_json(suite().model_dump_json()) == suite()


def test_an_operator_that_ships_is_never_shadowed() -> None:
    with pytest.raises(ManifestError, match="operator: gemm ships with Kernelgate"):
        suite(text=SUITE.replace('"fold"', '"gemm"'))


@pytest.mark.parametrize("name", ["", "Fold", "fold it", "x" * 64, "földer"])
def test_its_name_is_a_plain_one(name: str) -> None:
    with pytest.raises(ManifestError, match="is no name for an operator"):
        suite(text=SUITE.replace('"fold"', f'"{name}"'))


def test_an_operator_without_its_file_is_unknown() -> None:
    with pytest.raises(
        ManifestError, match=r"fold is not an operator \(gemm, attention\), and there is no operator.py"
    ):
        suite(None)


def test_the_suites_file_can_not_hold_the_operator_itself() -> None:
    with pytest.raises(ManifestError, match="operator_source is not a field of the file"):
        suite(None, f'operator_source = "x"\n{SUITE}')


def test_constraints_name_its_dimensions() -> None:
    manifest = (
        'label = "v0"\nsummary = "s"\nlanguage = "cpp"\nsource = "a.cpp"\n[constraints]\nat_most = { depth = 1 }\n'
    )
    with pytest.raises(ManifestError, match=r"depth is not a dimension of fold \(rows, columns, halved\)"):
        check_constraints(parse_manifest(manifest), suite().operator_schema)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("DIMS =", "DIM =", "DIMS is missing"),
        ('DIMS = ("rows", "columns")', 'DIMS = tuple("rows")', "operator.py:2: DIMS must be written out"),
        ("FLOP =", 'FLOP = "1"\nFLOP =', "operator.py:7: FLOP is there twice"),
        ('"rows * columns"', '"rows * depth"', "depth is not a dimension (rows, columns, halved)"),
        ('"rows * columns"', '"rows ** columns"', "only integers, dimensions, + - * // / and brackets"),
        ('"rows * columns"', '"__import__(1)"', "only integers, dimensions, + - * // / and brackets"),
        ('BY_ROWS = ("x",)', 'BY_ROWS = ("z",)', "BY_ROWS: z is not an input"),
        ('{"y":', '{"x":', "x is an input and an output"),
        ('("rows", "columns // 2")', "()", "y must have one to four dimensions"),
        ('"columns // 2"', '"columns // 9"', "y: 'columns // 9' is 0"),
        ('"columns // 2"', '"columns / 2"', "y: 'columns / 2' is 4.0"),
        ('("rows", "columns // 2")', '("rows + 1", "columns")', "BY_ROWS: x, y differ in their rows"),
        ("def baseline(torch, inputs, outputs, dims)", "def baseline(torch)", "baseline takes (torch, inputs, outputs"),
        ("def reference", "def references", "a function reference(xp, inputs, dims) is missing"),
        ("FLAGS", 'FAMILIES = ("odd",)\nFLAGS', "FAMILIES needs a function fill(draw, family, inputs, dims)"),
        ("FLAGS", 'FAMILIES = ("normal",)\nFLAGS', "FAMILIES: normal is there already"),
        ("FLAGS", 'FAMILIES = ("Far Away",)\nFLAGS', "FAMILIES String should match pattern"),
        ("DIMS", "(DIMS", "operator.py:2: '(' was never closed"),
        ("DIMS", "# \u202e\nDIMS", "operator.py:2: the character U+202E is not allowed"),
        ("DIMS", "# \x1b[2J\nDIMS", "operator.py:2: the character U+001B is not allowed"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(was: str, now: str, says: str) -> None:
    assert was in OPERATOR
    with pytest.raises(ManifestError) as refused:
        suite(OPERATOR.replace(was, now, 1))
    assert says in str(refused.value)
    assert "suite.toml: " in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_CHARACTERS + 1),
        "(" * 10_000,
        f"x = {'-' * 30_000}1",
        "x = " + "[" * 150 + "]" * 150 + "\nDIMS = " + "(" * 5000,
        f"DIMS = {'+'.join(['1'] * 10_000)}",
        f"x = {'.a' * 16_000}",
        "\x00",
    ],
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(OwnOperatorError):
        read_signature(text)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 * m * n", 24), ("m // 2 + 1", 3), ("(m + n) / 2", 3.5), ("7", 7)],
)
def test_arithmetic_has_its_value(text: str, value: float) -> None:
    assert expressions.evaluate(text, {"m": 4, "n": 3}) == value


@pytest.mark.parametrize("text", ["m // 0", "k", "True", "'a' * 3", "m if n else 1", "m.real", "1e9", "-m" * 99, ""])
def test_what_is_no_arithmetic_has_none(text: str) -> None:
    with pytest.raises(expressions.ExpressionError):
        expressions.check(text, ("m", "n")) or expressions.evaluate(text, {"m": 4, "n": 3})


@pytest.mark.parametrize(
    "line",
    [
        "TERMS = 1\nTERMS += 5",
        "TERMS, OTHER = 5, 6",
        "if True:\n    TERMS = 7",
        "for TERMS in (8,): pass",
        "(TERMS := 9)",
        "TERMS = 3\ndel TERMS",
        "TERMS: int",
        "TERMS = 3\nimport math as TERMS",
        "from math import TERMS",
        "def TERMS(): ...",
        "class TERMS: ...",
        "try: pass\nexcept OSError as TERMS: pass",
        "match 1:\n    case TERMS: pass",
    ],
)
def test_a_constant_that_would_be_another_when_run_is_refused(line: str) -> None:
    with pytest.raises(OwnOperatorError, match="TERMS must be"):
        read_signature(f"{OPERATOR}\n{line}\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("TERMS = True", "TERMS holds True, which is no number or text"),
        ("BYTES = False", "BYTES holds False"),
        ("BASELINE_WRITES = 1", "BASELINE_WRITES Input should be a valid boolean"),
        ('BASELINE_WRITES = "yes"', "BASELINE_WRITES Input should be a valid boolean"),
    ],
)
def test_true_is_no_number_and_a_number_is_not_true(line: str, says: str) -> None:
    with pytest.raises(OwnOperatorError) as refused:
        read_signature(f"{OPERATOR}\n{line}\n")
    assert says in str(refused.value)
    with pytest.raises(OwnOperatorError, match="INPUTS holds True"):
        read_signature(OPERATOR.replace('"x": ("rows", "columns")', '"x": ("rows", True)'))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("def reference(xp, inputs, dims): ...", "operator.py:16: reference is there twice"),
        ("if True:\n    def reference(xp, inputs, dims): ...", "operator.py:17: reference must be defined once"),
        ("try:\n    pass\nfinally:\n    reference = print", "reference must be defined once, at the top"),
        ("async def baseline(torch, inputs, outputs, dims): ...", "baseline must be defined once"),
        ("class reference: ...", "reference must be defined once"),
        ("from math import gcd as reference", "reference must be defined once"),
        ("baseline = reference", "baseline must be defined once"),
        ("(reference := 1)", "reference must be defined once"),
        ("def swap():\n    global reference\n    reference = print", "reference must be defined once"),
        ("del reference", "reference must be defined once"),
        ("if True:\n    def fill(draw, family, inputs, dims): ...", "fill must be defined once"),
    ],
)
def test_a_function_that_would_be_another_when_run_is_refused(line: str, says: str) -> None:
    with pytest.raises(OwnOperatorError) as refused:
        read_signature(f"{OPERATOR}\n{line}\n")
    assert says in str(refused.value)


def test_what_a_function_names_for_itself_is_its_own() -> None:
    helper = "def helper(reference):\n    baseline = reference\n    return [fill for fill in baseline]"
    assert read_signature(f"{OPERATOR}\n{helper}\n").terms == 1


def test_a_constant_may_have_its_type_beside_it() -> None:
    assert read_signature(f"{OPERATOR}\nTERMS: int = 4096\n").terms == 4096


def test_the_shipped_example_is_short() -> None:
    assert suite_of("rmsnorm").signature is not None
    assert len((KERNELS / "rmsnorm" / "operator.py").read_text().splitlines()) < 80
