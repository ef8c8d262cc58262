import ast
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest

from contract.bundle import MAX_BYTES, MAX_FILES
from contract.devices import DeviceClass
from contract.manifest import Constraints, Manifest, check_constraints, parse_manifest, parse_suite
from contract.operators import OPERATORS
from contract.outcomes import OUTCOME_OF
from contract.own_operator import FUNCTIONS, Signature
from contract.suite import Allowance, Anchor, Case, Policy, Prediction, StaticLimit, Suite
from tests.infra.described import code_blocks, rows_of, tables_by_heading
from worker.operators import OPERATORS as COMPUTED
from worker.operators import operator_of_suite
from worker.operators.base import Numerics
from worker.operators.products import ArrayProducts

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/authoring.md").read_text()
TABLES = tables_by_heading(TEXT)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("kernel.toml", Manifest),
        ("constraints", Constraints),
        ("suite.toml", Suite),
        ("cases and verify_cases", Case),
        ("policy", Policy),
        ("static_limits", StaticLimit),
        ("anchor", Anchor),
        ("allowances", Allowance),
        ("predictions", Prediction),
    ],
)
def test_every_field_stands_in_its_table_with_type_and_default(heading, model):
    written = [(name.strip("`"), kind, default) for name, kind, default, _ in TABLES[heading]]
    assert written == rows_of(model)
    assert all(len(meaning) > 3 for *_, meaning in TABLES[heading])


def test_every_reason_stands_with_its_outcome_and_what_it_means():
    written = [(reason.strip("`"), outcome.strip("`")) for reason, outcome, _ in TABLES["Outcomes and reasons"]]
    assert written == [(reason.value, outcome.value) for reason, outcome in OUTCOME_OF.items()]
    assert all(len(meaning) > 10 for *_, meaning in TABLES["Outcomes and reasons"])


def test_the_examples_are_valid():
    for text in code_blocks(TEXT, "toml"):
        if "label" in tomllib.loads(text):
            check_constraints(parse_manifest(text), OPERATORS["gemm"])
        else:
            parse_suite(text)
    assert len(code_blocks(TEXT, "toml")) == 3


def test_the_c_example_compiles(tmp_path):
    (source,) = code_blocks(TEXT, "cpp")
    (tmp_path / "gemm.cpp").write_text(source)
    include = ROOT / "worker/toolchains/include"
    command = ["g++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", f"-I{include}", str(tmp_path / "gemm.cpp")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_the_triton_example_defines_what_is_called():
    source, _ = code_blocks(TEXT, "python")
    functions = {node.name: [argument.arg for argument in node.args.args] for node in ast.parse(source).body}
    assert functions["run"] == ["inputs", "outputs", "params", "workspace"]
    assert functions["workspace_bytes"] == ["inputs", "outputs", "params"]


def test_the_operators_example_is_valid():
    _, source = code_blocks(TEXT, "python")
    cases = 'device_classes = ["cpu"]\ncases = [{ dims = { rows = 2, columns = 3 } }]\n'
    suite = parse_suite(f'kernel = "mine"\noperator = "softmax"\ndtype = "fp32"\n{cases}', operator=source)
    operator = operator_of_suite(suite)
    inputs = [np.empty((2, 3), np.float32)]
    how = Numerics(
        xp=np,
        dtype="fp32",
        work=np.float64,
        products=ArrayProducts(np.float64),
        tolerances=operator.tolerances,
    )
    for family in operator.families:
        operator.fill(np, family, inputs, suite.cases[0].dims, seed=1)
        weights = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
        output = weights / weights.sum(axis=-1, keepdims=True)
        assert operator.compare(how, family, inputs, [output], suite.cases[0].dims).passed


def test_the_constants_of_an_operator_stand_in_their_table_with_their_defaults():
    table = TABLES["An operator of your own"]
    written = {name.strip("`"): default for name, default, *_ in table if name.strip("`").isupper()}
    assert list(written) == [name.upper() for name in Signature.model_fields]
    required = {name.upper() for name, field in Signature.model_fields.items() if field.is_required()}
    assert {name for name, default in written.items() if default == "required"} == required
    functions = [name.strip("`") for name, *_ in table if name.strip("`").endswith(")")]
    assert functions == [f"{name}({', '.join(parameters)})" for name, parameters in FUNCTIONS.items()]


def _list(cell: str) -> tuple[str, ...]:
    return tuple(word.strip().strip("`") for word in cell.split(",") if word.strip())


def test_the_operators_table_says_what_the_operators_are():
    written = {name.strip("`"): (dims, flags, dtypes) for name, dims, flags, dtypes, *_ in TABLES["Operators"][:2]}
    assert {name: tuple(map(_list, cells)) for name, cells in written.items()} == {
        name: (schema.dims, schema.flags, schema.dtypes) for name, schema in OPERATORS.items()
    }


def test_the_tolerances_table_says_what_a_suite_may_override():
    written = [tuple(cell.strip("`") for cell in row[:3]) for row in TABLES["Operators"][2:]]
    assert written == [
        (name, tolerance, str(value))
        for name, operator in COMPUTED.items()
        for tolerance, value in operator.tolerances.items()
    ]


def test_the_limits_of_a_bundle_are_those_that_are_checked():
    assert f"At most {MAX_FILES} files and {MAX_BYTES >> 20} MiB" in TEXT


def test_every_device_class_is_named_in_the_glossary():
    glossary = (ROOT / "docs/architecture.md").read_text()
    assert [klass for klass in DeviceClass if f"`{klass}`" not in glossary] == []
