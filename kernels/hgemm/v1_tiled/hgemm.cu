// C = A B: fp16 in and out, fp32 accumulate, row-major. Shared-memory tiles, 8x8 results in each thread's registers.
//
// NOTES: a CTA's tile of A and B is read from global memory once and used 128 times; a thread reads 16 values from
// shared memory for 64 multiply-adds. What is left is the rate of FFMA: the tensor cores are not used yet.
#include <cuda_fp16.h>

#include "kernelgate.h"

namespace {

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 16;
constexpr int kThreads = 256, kThreadsPerSide = 16;
constexpr int kQuad = 4;                          // a thread's 8x8 results are 2x2 quads of 4x4, half a tile apart
constexpr int kHalfM = kBlockM / 2, kHalfN = kBlockN / 2;
constexpr int kVector = 8;                        // halves in a 16-byte load
constexpr int kPad = 4;                           // A is stored transposed: spreads its columns over the banks

static_assert(kBlockK == 16, "K is a multiple of 16: with steps of 16 no tile of K is partial");
static_assert(kBlockM * kBlockK == kThreads * kVector, "one 16-byte load of A a thread");
static_assert(kBlockN * kBlockK == kThreads * kVector, "one 16-byte load of B a thread");
static_assert(kHalfM == kThreadsPerSide * kQuad && kHalfN == kThreadsPerSide * kQuad, "quads cover the tile");

struct Halves {
  half value[kVector];
};

__device__ Halves load_vector(const half* from, bool inside) {
  const uint4 raw = inside ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
  return *reinterpret_cast<const Halves*>(&raw);
}

__global__ void __launch_bounds__(kThreads)
    hgemm_tiled(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ c, int m, int n, int k) {
  __shared__ alignas(16) float tile_a[kBlockK][kBlockM + kPad];  // fp32: converted once, not at every use
  __shared__ alignas(16) float tile_b[kBlockK][kBlockN];

  const int tid = threadIdx.x;
  const int first_row = blockIdx.y * kBlockM, first_col = blockIdx.x * kBlockN;
  const int a_row = tid / (kBlockK / kVector), a_col = tid % (kBlockK / kVector) * kVector;
  const int b_row = tid / (kBlockN / kVector), b_col = tid % (kBlockN / kVector) * kVector;
  const bool a_inside = first_row + a_row < m, b_inside = first_col + b_col < n;  // whole vectors: N % 16 == 0
  const half* from_a = a + size_t(first_row + a_row) * k + a_col;
  const half* from_b = b + size_t(b_row) * n + first_col + b_col;
  const int row = tid / kThreadsPerSide * kQuad, col = tid % kThreadsPerSide * kQuad;

  float sum[2 * kQuad][2 * kQuad] = {};
  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    const Halves part_a = load_vector(from_a + k0, a_inside);
    const Halves part_b = load_vector(from_b + size_t(k0) * n, b_inside);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      tile_a[a_col + i][a_row] = __half2float(part_a.value[i]);
      tile_b[b_row][b_col + i] = __half2float(part_b.value[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kBlockK; ++i) {
      float av[2 * kQuad], bv[2 * kQuad];
      *reinterpret_cast<float4*>(av) = *reinterpret_cast<const float4*>(&tile_a[i][row]);
      *reinterpret_cast<float4*>(av + kQuad) = *reinterpret_cast<const float4*>(&tile_a[i][row + kHalfM]);
      *reinterpret_cast<float4*>(bv) = *reinterpret_cast<const float4*>(&tile_b[i][col]);
      *reinterpret_cast<float4*>(bv + kQuad) = *reinterpret_cast<const float4*>(&tile_b[i][col + kHalfN]);
#pragma unroll
      for (int y = 0; y < 2 * kQuad; ++y)
#pragma unroll
        for (int x = 0; x < 2 * kQuad; ++x) sum[y][x] += av[y] * bv[x];
    }
    __syncthreads();
  }

#pragma unroll
  for (int y = 0; y < 2 * kQuad; ++y) {
    const int to_row = first_row + row + y % kQuad + y / kQuad * kHalfM;
#pragma unroll
    for (int x = 0; x < 2 * kQuad; x += kQuad) {
      const int to_col = first_col + col + x / kQuad * kHalfN;
      if (to_row >= m || to_col >= n) continue;
      const half2 pair[2] = {__floats2half2_rn(sum[y][x], sum[y][x + 1]),
                             __floats2half2_rn(sum[y][x + 2], sum[y][x + 3])};
      *reinterpret_cast<uint2*>(c + size_t(to_row) * n + to_col) = *reinterpret_cast<const uint2*>(pair);
    }
  }
}

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const int m = int(call->in[0].shape[0]), k = int(call->in[0].shape[1]), n = int(call->in[1].shape[1]);
  if (m % 16 || n % 16 || k % 16) return int(cudaErrorInvalidValue);
  const dim3 grid((n + kBlockN - 1) / kBlockN, (m + kBlockM - 1) / kBlockM);
  hgemm_tiled<<<grid, kThreads, 0, cudaStream_t(call->stream)>>>(
      static_cast<const half*>(call->in[0].data), static_cast<const half*>(call->in[1].data),
      static_cast<half*>(call->out[0].data), m, n, k);
  return int(cudaGetLastError());
}
