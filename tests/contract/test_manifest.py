import time

import pytest

from contract.devices import DeviceClass
from contract.manifest import ManifestError, check_constraints, parse_manifest, parse_suite
from contract.operators import OPERATORS

MANIFEST = 'label = "v4"\nsummary = "swizzle"\nlanguage = "cuda"\nsource = "kernel.cu"\n'
SUITE = """
kernel = "hgemm"
operator = "gemm"
dtype = "fp16"
device_classes = ["h200"]
revisions = ["v0_naive"]
[[cases]]
dims = { k = 64, m = 4096, n = 4096 }
"""


def test_a_manifest_is_read_with_its_defaults() -> None:
    manifest = parse_manifest(MANIFEST)
    assert manifest.entry_point == "kernelgate_run"
    assert parse_manifest(MANIFEST.replace("cuda", "triton").replace(".cu", ".py")).entry_point == "run"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("speed = 3\n", "kernel.toml: speed is not a field (allowed: label, summary,"),
        ('entry = "a b"\n', "kernel.toml: entry: String should match pattern"),
        ("[constraints]\nat_least = {m = 3}\n", "kernel.toml: constraints.at_least is not a field"),
        ("label = ", "kernel.toml: "),
    ],
)
def test_a_wrong_manifest_says_which_field_and_what_is_allowed(change: str, says: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_manifest(MANIFEST + change)
    assert says in str(refused.value)


def test_a_constraint_on_no_dimension_is_refused_by_name() -> None:
    manifest = parse_manifest(MANIFEST + "[constraints]\nmultiple_of = {q = 16}\n")
    with pytest.raises(ManifestError) as refused:
        check_constraints(manifest, OPERATORS["gemm"])
    assert str(refused.value) == "kernel.toml: constraints.multiple_of.q is not a dimension of gemm (m, n, k)"


@pytest.mark.parametrize(
    ("dims", "why"),
    [
        ({"m": 16, "n": 16, "k": 16}, None),
        ({"m": 17, "n": 16, "k": 16}, "m = 17 is not a multiple of 16"),
        ({"m": 4096, "n": 16, "k": 16}, "m = 4096 is over 2048"),
        ({"m": 16, "n": 48, "k": 16}, "n = 48 is not one of 16, 32"),
    ],
)
def test_constraints_say_why_a_case_is_refused(dims: dict[str, int], why: str | None) -> None:
    text = MANIFEST + "[constraints]\nmultiple_of = {m = 16}\nat_most = {m = 2048}\nonly = {n = [16, 32]}\n"
    assert parse_manifest(text).constraints.refusal(dims) == why


def test_a_case_is_named_by_its_dimensions_in_the_operators_order() -> None:
    assert parse_suite(SUITE).cases[0].id == "m=4096,n=4096,k=64"


def test_appending_a_revision_is_no_edit_of_the_suite_and_anything_else_is() -> None:
    suite = parse_suite(SUITE)
    appended = parse_suite(SUITE.replace('["v0_naive"]', '["v0_naive", "v1_tiled"]'))
    edited = parse_suite(SUITE + "[policy]\nallowed_slowdown = 0.02\n")
    assert suite.digest == appended.digest
    assert suite.digest != edited.digest


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (SUITE.replace('"gemm"', '"conv"'), "operator: conv is not an operator (gemm, attention)"),
        (SUITE.replace("k = 64, ", ""), "must give exactly m, n, k"),
        (SUITE.replace("k = 64", "k = 0"), "k is too small"),
        (SUITE.replace("fp16", "fp32x"), "dtype fp32x is not one of gemm's (fp16, fp32)"),
        (SUITE + "[[cases]]\ndims = {m = 4096, n = 4096, k = 64}\n", "two cases have the same dimensions"),
        (
            SUITE + '[[allowances]]\nrevision = "v4"\nbase = "v3"\ncase = "m=1,n=1,k=1"\n'
            'device_class = "h200"\nreason = "x"\n',
            "m=1,n=1,k=1 is not a case of this suite",
        ),
    ],
)
def test_a_wrong_suite_says_what_is_wrong(change: str, says: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_suite(change)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('architectures = ["sm_42"]\n', "architectures: sm_42 is not an architecture (sm_89, sm_90a, sm_103a)"),
        ('architectures = ["sm_89", "sm_89"]\n', "architectures: an architecture is named twice"),
    ],
)
def test_an_architecture_that_nothing_is_compiled_for_is_refused(change: str, says: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_manifest(MANIFEST + change)
    assert says in str(refused.value)


def test_cpp_names_no_architectures() -> None:
    with pytest.raises(ManifestError, match="cpp is compiled for the CPU that it runs on"):
        parse_manifest(MANIFEST.replace("cuda", "cpp").replace(".cu", ".cpp") + 'architectures = ["sm_89"]\n')


def test_a_manifest_without_architectures_is_compiled_for_the_suites_classes() -> None:
    classes = (DeviceClass.B300, DeviceClass.RTX4090, DeviceClass.RTX4090D, DeviceClass.CPU)
    assert parse_manifest(MANIFEST).architectures_for(classes) == ("sm_89", "sm_103a")
    named = parse_manifest(MANIFEST + 'architectures = ["sm_103a", "sm_90a"]\n')
    assert named.architectures_for(classes) == ("sm_90a", "sm_103a")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(f"[constraints.at_most]\nm = {'1' * 1900}\n", id="a number without end"),
        pytest.param("x = " + "[\n" * 5000, id="brackets without end"),
        pytest.param("x" + ".a" * 100_000 + " = 1\n", id="dots without end"),
        pytest.param("# " + "\n# " * 100_000, id="a text without end"),
        pytest.param("[constraints.multiple_of]\nm = 0\n", id="a multiple of nothing"),
    ],
)
def test_what_would_keep_a_reader_busy_or_break_it_is_refused_at_once(more: str) -> None:
    began = time.monotonic()
    with pytest.raises(ManifestError):
        parse_manifest(MANIFEST + more)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("source", ["kernel.o", "kernel.S", "kernel.ld", "kernel.so", "kernel", "kernel.cpp"])
def test_source_is_the_languages_own(source: str) -> None:
    assert parse_manifest(MANIFEST).source == "kernel.cu"
    with pytest.raises(ManifestError, match=f"{source}' is no .cu file"):
        parse_manifest(MANIFEST.replace("kernel.cu", source))


def test_why_a_case_is_refused_has_room_in_a_report_however_many_others_are_not() -> None:
    some = parse_manifest(MANIFEST + "[constraints]\nonly = {m = [64, 128]}\n").constraints
    assert some.refusal({"m": 65}) == "m = 65 is not one of 64, 128"
    lines = ",\n".join(map(str, range(10**15, 10**15 + 10_000)))
    many = parse_manifest(f"{MANIFEST}[constraints.only]\nm = [{lines}]\n").constraints.refusal({"m": 65})
    assert many is not None
    assert many.endswith(", ...")
    assert len(many) < 1000
