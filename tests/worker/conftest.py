import subprocess
from pathlib import Path

import pytest

from tests.worker.jobs import FIXTURES
from worker.toolchains.nvcc import find_nvcc


@pytest.fixture(scope="session")
def cubin(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("cubin") / "spills.cubin"
    argv = [find_nvcc(None).path, "-O3", "-gencode=arch=compute_90a,code=sm_90a", "--cubin", "-o", out]
    subprocess.run([*argv, FIXTURES / "spills.cu"], check=True)
    return out
