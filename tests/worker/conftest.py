import subprocess
from pathlib import Path

import pytest

from tests.worker.jobs import FIXTURES
from worker import node
from worker.toolchains.nvcc import find_nvcc


@pytest.fixture(scope="session")
def cubin(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("cubin") / "spills.cubin"
    argv = [find_nvcc(None).path, "-O3", "-gencode=arch=compute_90a,code=sm_90a", "--cubin", "-o", out]
    subprocess.run([*argv, FIXTURES / "spills.cu"], check=True)
    return out


@pytest.fixture
def _an_h200(monkeypatch):
    gpu = node.Gpu(name="NVIDIA H200", uuid="GPU-0", driver="580.1")
    monkeypatch.setattr(node, "known_gpu", lambda: (gpu, None))
