// C = A B in fp32, row-major: the definition, one element of C after another.
//
// NOTES: the sum runs down a column of B, a cache line for every product. The bottom of the ladder: what later
// revisions are right against.
#include "kernelgate.h"

extern "C" int kernelgate_run(const kg_call* call) {
  const auto* a = static_cast<const float*>(call->in[0].data);
  const auto* b = static_cast<const float*>(call->in[1].data);
  auto* c = static_cast<float*>(call->out[0].data);
  const int64_t m = call->in[0].shape[0], k = call->in[0].shape[1], n = call->in[1].shape[1];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  return 0;
}
