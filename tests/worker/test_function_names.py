"""Names that honest compilers give to functions can be recorded, whatever the source was."""

from __future__ import annotations

import subprocess

import pytest
from pydantic import ValidationError

from contract.record import Launch
from tests.worker.jobs import FIXTURES
from worker.inspect import Elf, statics_of_cubin
from worker.toolchains.nvcc import find_nvcc

ARCHITECTURES = ("sm_89", "sm_90a", "sm_103a")


@pytest.fixture(scope="module", params=ARCHITECTURES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """(architecture, cubin)"""
    arch, out = request.param, tmp_path_factory.mktemp("names") / "names.cubin"
    argv = [find_nvcc(None).path, "-O1", "-std=c++20", "--extended-lambda", "--cubin", "-o", out]
    virtual = arch.replace("sm_", "compute_")
    subprocess.run([*argv, f"-gencode=arch={virtual},code={arch}", FIXTURES / "names.cu"], check=True)
    return arch, out.read_bytes()


def launch(function: str) -> Launch:
    return Launch(
        function=function, cubin="0" * 64, grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, max_shared_bytes=0,
        parameters=b"",
    )  # fmt: skip


def test_templates_lambdas_operators_and_texts_have_names_that_a_record_takes(compiled: tuple[str, bytes]) -> None:
    arch, cubin = compiled
    names = [symbol.name for symbol in Elf(cubin).symbols(".symtab") if symbol.is_defined_function]
    assert len(names) == 10
    assert max(map(len, names)) > 5000
    assert [launch(name).function for name in names] == names
    assert len({each.function for each in statics_of_cubin(cubin, architecture=arch)}) == 10


@pytest.mark.parametrize("name", ["", "two words", 'a"b', "a\x1b[2J", "größe", "a\n", "n" * 65_536])
def test_what_no_compiler_gives_is_no_name(name: str) -> None:
    with pytest.raises(ValidationError):
        launch(name)
