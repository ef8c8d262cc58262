"""Small C++ revisions of gemm: one that is right, and those that are not, each in its own way."""

from __future__ import annotations

from typing import Any

CASE = {"m": 16, "n": 16, "k": 16}
_TEMPLATE = """#include "kernelgate.h"
%(before)s
static void gemm(const kg_call* call, int64_t rows) {
  const auto* a = static_cast<const float*>(call->in[0].data);
  const auto* b = static_cast<const float*>(call->in[1].data);
  auto* c = static_cast<float*>(call->out[0].data);
  const int64_t k = call->in[0].shape[1], n = call->in[1].shape[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
}
extern "C" int kernelgate_run(const kg_call* call) {
  const int64_t m = call->in[0].shape[0];
  auto* c = static_cast<float*>(call->out[0].data);
  (void)c;
  gemm(call, m);
  %(body)s
  return 0;
}
"""
# Seconds of g++'s time: one loop after another, each nearly as long as the compiler allows.
_SLOW_TO_COMPILE = """template <int N> constexpr long spin() {
  long sum = N;
  for (long i = 0; i < 250000; ++i) sum = (sum * 7 + i) & 1023;
  return sum;
}
"""


def source(body: str = "", *, before: str = "") -> str:
    return _TEMPLATE % {"body": body, "before": before}


def slow_to_compile(times: int, *, name: str) -> str:
    """`name`: what makes this source another than the next one, so that no cache knows it."""
    lines = "\n".join(f"static_assert(spin<{number}>() >= 0);" for number in range(times))
    return source(before=f"// {name}\n" + _SLOW_TO_COMPILE + lines)


def files(text: str, *, label: str = "v1", manifest: str = "") -> dict[str, str]:
    head = f'label = "{label}"\nsummary = "a test"\nlanguage = "cpp"\nsource = "gemm.cpp"\n'
    return {"kernel.toml": head + manifest, "gemm.cpp": text}


def suite(kernel: str, **changes: Any) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "operator": "gemm",
        "dtype": "fp32",
        "device_classes": ["cpu"],
        "cases": [{"dims": CASE}],
        **changes,
    }
