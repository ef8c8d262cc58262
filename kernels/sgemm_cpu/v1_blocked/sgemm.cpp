// C = A B in fp32, row-major: loops ordered and blocked for the caches.
//
// NOTES: the innermost loop runs along a row of B and of C, so that every byte of a cache line is used; a block of B
// stays in L2 while all rows of A pass over it. C is read and written for every product.
#include <algorithm>

#include "kernelgate.h"

namespace {

constexpr int64_t kBlockK = 64, kBlockN = 256;
static_assert(kBlockK * kBlockN * sizeof(float) <= 64 * 1024, "a block of B fits a small L2 with room to spare");

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const auto* a = static_cast<const float*>(call->in[0].data);
  const auto* b = static_cast<const float*>(call->in[1].data);
  auto* c = static_cast<float*>(call->out[0].data);
  const int64_t m = call->in[0].shape[0], k = call->in[0].shape[1], n = call->in[1].shape[1];
  std::fill_n(c, m * n, 0.0f);
  for (int64_t j0 = 0; j0 < n; j0 += kBlockN)
    for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
      const int64_t j1 = std::min(n, j0 + kBlockN), p1 = std::min(k, p0 + kBlockK);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t p = p0; p < p1; ++p) {
          const float scale = a[i * k + p];
          for (int64_t j = j0; j < j1; ++j) c[i * n + j] += scale * b[p * n + j];
        }
    }
  return 0;
}
