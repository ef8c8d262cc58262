"""Manifests and suites of the kernels that ship: what they name exists and fits together."""

from itertools import pairwise
from pathlib import Path

import pytest

from contract.bundle import check
from contract.devices import DeviceClass
from contract.manifest import check_constraints
from contract.suite import Suite
from tests.kernels.shipped import KERNELS, MANIFESTS, SUITES, manifest_of, suite_of

KERNEL_NAMES = [file.parent.name for file in SUITES]
per_kernel = pytest.mark.parametrize("kernel", KERNEL_NAMES)


def _folders(suite: Suite) -> list[Path]:
    return [KERNELS / suite.kernel / name for name in suite.revisions]


def test_the_four_kernels_ship():
    assert KERNEL_NAMES == ["attention_prefill", "hgemm", "rmsnorm", "sgemm_cpu"]


@per_kernel
def test_a_suite_carries_its_folders_name(kernel: str):
    assert suite_of(kernel).kernel == kernel


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parts[-3]}/{file.parts[-2]}")
def test_every_revision_is_a_bundle_whose_constraints_name_dimensions(file: Path):
    folder = file.parent
    check({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
    check_constraints(manifest_of(folder), suite_of(folder.parent.name).operator_schema)


@per_kernel
def test_every_listed_revision_exists_and_carries_its_folders_number(kernel: str):
    for folder in _folders(suite_of(kernel)):
        assert manifest_of(folder).label == folder.name.split("_")[0]


@per_kernel
def test_labels_are_unique_among_all_revisions_of_a_kernel(kernel: str):
    labels = [manifest_of(file.parent).label for file in MANIFESTS if file.parts[-3] == kernel]
    assert len(set(labels)) == len(labels)


@per_kernel
def test_every_revision_supports_a_case_and_a_verify_case_and_the_last_supports_all(kernel: str):
    suite = suite_of(kernel)
    for folder in _folders(suite):
        constraints = manifest_of(folder).constraints
        assert any(constraints.refusal(case.dims) is None for case in suite.cases)
        assert any(constraints.refusal(case.dims) is None for case in suite.verify_cases)
    assert [constraints.refusal(case.dims) for case in (*suite.cases, *suite.verify_cases)] == [None] * (
        len(suite.cases) + len(suite.verify_cases)
    )


@per_kernel
def test_each_constraint_of_a_revision_is_verified_at_its_edge(kernel: str):
    suite = suite_of(kernel)
    verified = [case.dims for case in (*suite.cases, *suite.verify_cases)]
    for folder in _folders(suite):
        constraints = manifest_of(folder).constraints
        for name, limit in constraints.at_most.items():
            assert any(dims[name] == limit for dims in verified), f"{folder.name}: {name} = {limit}"
        for name, factor in constraints.multiple_of.items():
            assert any(dims[name] // factor % 2 for dims in verified if dims[name] % factor == 0), folder.name
        for name, values in constraints.only.items():
            assert set(values) <= {dims[name] for dims in verified}, folder.name


@per_kernel
def test_allowances_and_predictions_name_listed_revisions_and_classes(kernel: str):
    suite = suite_of(kernel)
    order = [manifest_of(folder).label for folder in _folders(suite)]
    for entry in (*suite.allowances, *suite.predictions):
        assert order.index(entry.base) == order.index(entry.revision) - 1
        assert entry.device_class in suite.device_classes


@per_kernel
def test_every_step_of_a_ladder_that_predicts_has_a_prediction(kernel: str):
    suite = suite_of(kernel)
    if not suite.predictions:
        assert kernel == "rmsnorm"  # not measured yet
        return
    order = [manifest_of(folder).label for folder in _folders(suite)]
    predicted = {(entry.base, entry.revision) for entry in suite.predictions}
    assert {*pairwise(order)} <= predicted


def test_naive_hgemm_stops_at_2048():
    constraints = manifest_of(KERNELS / "hgemm" / "v0_naive").constraints
    assert constraints.refusal({"m": 2048, "n": 2048, "k": 2048}) is None
    assert constraints.refusal({"m": 4096, "n": 4096, "k": 64}) == "m = 4096 is over 2048"


@pytest.mark.parametrize("device_class", [DeviceClass.RTX4090, DeviceClass.RTX4090D])
def test_v4_of_hgemm_may_lose_to_v3_where_it_was_published_to(device_class: DeviceClass):
    suite = suite_of("hgemm")
    allowance = suite.allowance(revision="v4", base="v3", case="m=4096,n=4096,k=64", device_class=device_class)
    assert allowance is not None
    elsewhere = suite.allowance(revision="v4", base="v3", case="m=4096,n=4096,k=64", device_class=DeviceClass.H200)
    assert elsewhere is None


@per_kernel
def test_bad_revisions_stand_outside_the_ladder(kernel: str):
    suite = suite_of(kernel)
    others = {file.parts[-2] for file in MANIFESTS if file.parts[-3] == kernel} - set(suite.revisions)
    assert all(name.startswith("demo_") for name in others)
    assert all("on purpose" in manifest_of(KERNELS / kernel / name).summary for name in others)
