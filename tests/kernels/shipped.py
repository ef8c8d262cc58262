"""The kernels that ship, and how to call a C++ revision's library without a judge."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from contract.manifest import Manifest, parse_manifest, parse_suite
from contract.suite import Suite

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
INCLUDE = ROOT / "worker" / "toolchains" / "include"
SUITES = sorted(KERNELS.glob("*/suite.toml"))
MANIFESTS = sorted(KERNELS.glob("*/*/kernel.toml"))


def suite_of(kernel: str) -> Suite:
    file = KERNELS / kernel / "suite.toml"
    operator = file.with_name("operator.py")
    return parse_suite(file.read_text(), operator=operator.read_text() if operator.exists() else None, file=str(file))


def manifest_of(folder: Path) -> Manifest:
    return parse_manifest((folder / "kernel.toml").read_text(), file=str(folder / "kernel.toml"))


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 4),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]

    @classmethod
    def of(cls, matrix: np.ndarray) -> _Tensor:
        rows, cols = matrix.shape
        return cls(matrix.ctypes.data, (rows, cols), (cols, 1), 2, 1)


class _Call(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("params", ctypes.c_void_p),
        ("n_inputs", ctypes.c_int32),
        ("n_outputs", ctypes.c_int32),
        ("n_params", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
    ]


def build_cpp(folder: Path, to: Path, *, march: str = "native") -> ctypes.CDLL:
    manifest = manifest_of(folder)
    flags = ["-O3", f"-march={march}", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
    subprocess.run(
        ["g++", *flags, *manifest.flags, f"-I{INCLUDE}", str(folder / manifest.source), "-o", str(to)],
        check=True,
    )
    return ctypes.CDLL(str(to))


class Gemm:
    """One fp32 call: random inputs, poisoned output between poisoned guards, workspace of the size asked for."""

    def __init__(self, library: ctypes.CDLL, m: int, n: int, k: int) -> None:
        rng = np.random.default_rng((m, n, k))
        self.a = rng.standard_normal((m, k), dtype=np.float32)
        self.b = rng.standard_normal((k, n), dtype=np.float32)
        self._guarded = np.full(m * n + 128, np.nan, dtype=np.float32)
        self.c = self._guarded[64:-64].reshape(m, n)
        self._library = library
        self._inputs = (_Tensor * 2)(_Tensor.of(self.a), _Tensor.of(self.b))
        self._outputs = (_Tensor * 1)(_Tensor.of(self.c))
        self._call = _Call(self._inputs, self._outputs, None, 2, 1, 0, 0, None, 0, None)
        if hasattr(library, "kernelgate_workspace_bytes"):
            library.kernelgate_workspace_bytes.restype = ctypes.c_size_t
            size = library.kernelgate_workspace_bytes(ctypes.byref(self._call))
            self._workspace = np.full(size, 0xFF, dtype=np.uint8)
            self._call.workspace, self._call.workspace_bytes = self._workspace.ctypes.data, size

    def run(self) -> int:
        return int(self._library.kernelgate_run(ctypes.byref(self._call)))

    @property
    def error(self) -> float:
        """Largest error as a share of |A||B|; NaN where an element was not written."""
        a, b = self.a.astype(np.float64), self.b.astype(np.float64)
        return float((abs(self.c - a @ b) / (abs(a) @ abs(b))).max())

    @property
    def stayed_inside(self) -> bool:
        return bool(np.isnan(self._guarded[:64]).all() and np.isnan(self._guarded[-64:]).all())
