// C = A B: fp16 in and out, fp32 accumulate, row-major. One thread computes one element of C.
//
// NOTES: every operand is read from global memory for every product, 2 loads for 1 multiply-add, so the caches' load
// bandwidth is the limit. The bottom of the ladder: what later revisions are right against.
#include <cuda_fp16.h>

#include "kernelgate.h"

namespace {

constexpr int kBlockN = 32;  // a warp along n: loads of B and stores of C coalesce, A's element is a broadcast
constexpr int kBlockM = 8;

__global__ void __launch_bounds__(kBlockM* kBlockN)
    hgemm_naive(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ c, int m, int n, int k) {
  const int row = blockIdx.y * kBlockM + threadIdx.y;
  const int col = blockIdx.x * kBlockN + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i)
    sum += __half2float(a[size_t(row) * k + i]) * __half2float(b[size_t(i) * n + col]);
  c[size_t(row) * n + col] = __float2half(sum);
}

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const int m = int(call->in[0].shape[0]), k = int(call->in[0].shape[1]), n = int(call->in[1].shape[1]);
  const dim3 grid((n + kBlockN - 1) / kBlockN, (m + kBlockM - 1) / kBlockM);
  hgemm_naive<<<grid, dim3(kBlockN, kBlockM), 0, cudaStream_t(call->stream)>>>(
      static_cast<const half*>(call->in[0].data), static_cast<const half*>(call->in[1].data),
      static_cast<half*>(call->out[0].data), m, n, k);
  return int(cudaGetLastError());
}
