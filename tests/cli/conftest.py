from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.stub import Stub

SUITE = """
kernel = "hgemm"
operator = "gemm"
dtype = "fp16"
device_classes = ["h200"]
revisions = ["v3", "v4"]
[[cases]]
dims = { m = 4096, n = 4096, k = 4096 }
[[cases]]
dims = { m = 4096, n = 4096, k = 64 }
[[allowances]]
revision = "v4"
base = "v3"
case = "m=4096,n=4096,k=64"
device_class = "h200"
reason = "two steps of k"
"""
MANIFEST = """
label = "v4"
summary = "swizzle"
language = "cuda"
source = "hgemm.cu"
"""


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """The service that commands talk to."""
    service = Stub()
    monkeypatch.setattr("cli.commands.connection.connect", service.client)
    monkeypatch.setenv("COLUMNS", "200")
    return service


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel's folder: suite.toml and the revision v4."""
    folder = tmp_path / "hgemm"
    (folder / "v4").mkdir(parents=True)
    (folder / "suite.toml").write_text(SUITE)
    (folder / "v4" / "kernel.toml").write_text(MANIFEST)
    (folder / "v4" / "hgemm.cu").write_text("// nothing\n")
    return folder
