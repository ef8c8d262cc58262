"""One builder a language, behind one registry."""

from __future__ import annotations

from contract.manifest import Language
from worker.settings import WorkerSettings
from worker.toolchains.base import BuildFailed, Built, Request, Toolchain, ToolchainMissing
from worker.toolchains.cpp import CppToolchain
from worker.toolchains.cuda import CudaToolchain
from worker.toolchains.triton import TritonToolchain

__all__ = ["BuildFailed", "Built", "Request", "Toolchain", "ToolchainMissing", "toolchain_for"]


def toolchain_for(language: Language, settings: WorkerSettings) -> Toolchain:
    builders: dict[Language, Toolchain] = {
        "cpp": CppToolchain(compiler=settings.gxx),
        "cuda": CudaToolchain(nvcc=settings.nvcc, host_compiler=settings.gxx),
        "triton": TritonToolchain(),
    }
    return builders[language]
