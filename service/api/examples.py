"""Examples for the OpenAPI document: one kernel's way through the API."""

from typing import Any

_MANIFEST = """label = "v2"
summary = "blocked for L1"
language = "cpp"
source = "sgemm.cpp"
"""

PROJECT: dict[str, Any] = {"slug": "acme--kernels", "name": "Acme's kernels"}

SUITE: dict[str, Any] = {
    "kernel": "sgemm_cpu",
    "operator": "gemm",
    "dtype": "fp32",
    "summary": "single precision matrix product on the CPU",
    "device_classes": ["cpu"],
    "revisions": ["v1_naive", "v2_blocked"],
    "cases": [{"dims": {"m": 256, "n": 256, "k": 256}}, {"dims": {"m": 512, "n": 512, "k": 512}}],
    "verify_cases": [{"dims": {"m": 33, "n": 17, "k": 5}}],
    "policy": {"allowed_slowdown": 0.02},
}

REVISION: dict[str, Any] = {
    "project": "local",
    "kernel": "sgemm_cpu",
    "files": {"kernel.toml": _MANIFEST, "sgemm.cpp": '#include "kernelgate.h"\n// …\n'},
    "commit": "9c2e1f00c9a7d1b7a4b3f8f6f0a1c2d3e4f5a6b7",
    "branch": "main",
    "base": "v1",
    "device_classes": ["cpu"],
}

EVALUATION: dict[str, Any] = {"revision": "rev_crc82fnxkx9sv2s9dqnhetr06f", "device_class": "cpu", "base": "v1"}

IMPORT: dict[str, Any] = {
    "csv": (
        "kernel,device_class,label,base,case,metric,value,unit,note\n"
        "attention_b300,b300,V20,,b1-h64-s1024-d128-full,throughput,220.5,TFLOPS,serial main loop\n"
        "attention_b300,b300,V21,V20,b1-h64-s1024-d128-full,throughput,355.8,TFLOPS,double buffering\n"
    ),
    "provenance": "the author's published table",
    "margin": 0.01,
}

TOKEN: dict[str, Any] = {"scope": "worker", "node": "gpu-07", "note": "the H200 in rack 4"}

NODE: dict[str, Any] = {
    "name": "gpu-07",
    "device_class": "h200",
    "host": "rack4",
    "device": "NVIDIA H200",
    "driver": "580.159.04",
    "healthy": True,
}
CLAIM: dict[str, Any] = {"node": NODE}
HEARTBEAT: dict[str, Any] = {
    "node": NODE,
    "progress": [{"stage": "measure", "done": 3, "total": 5, "detail": "m=4096,n=4096,k=4096"}],
}
REPORT: dict[str, Any] = {
    "protocol_version": 1,
    "device_class": "h200",
    "failure": {
        "reason": "compile_error",
        "stage": "build",
        "message": 'hgemm.cu(12): error: identifier "mma_sinc" is undefined',
    },
}
