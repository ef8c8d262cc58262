// C = A B: fp16 in and out, fp32 accumulate, row-major. Tensor cores through WMMA: CTA 128x128x32, warp 64x32.
//
// NOTES: the multiply-adds move from FFMA to the tensor cores, and the tiles stay fp16 in shared memory. Loading a
// tile and multiplying it still take turns: while the loads are under way the tensor cores wait.
#include <cuda_fp16.h>
#include <mma.h>

#include "kernelgate.h"

namespace {

using namespace nvcuda;

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 32;
constexpr int kWarpM = 64, kWarpN = 32;
constexpr int kFragment = 16;  // WMMA's m, n and k
constexpr int kWarpsN = kBlockN / kWarpN, kWarps = kBlockM / kWarpM * kWarpsN;
constexpr int kThreads = kWarps * 32;
constexpr int kFragmentsM = kWarpM / kFragment, kFragmentsN = kWarpN / kFragment;
constexpr int kVector = 8;                // halves in a 16-byte access
constexpr int kPad = 8;                   // a row's start moves by 4 banks: the 8 rows of a load meet different banks
constexpr int kPitchA = kBlockK + kPad, kPitchB = kBlockN + kPad;
constexpr int kVectorsA = kBlockM * kBlockK / kVector, kVectorsB = kBlockK * kBlockN / kVector;
constexpr int kSharedHalves = kBlockM * kPitchA + kBlockK * kPitchB;

static_assert(kThreads == 256, "a warp of 64x32 in a CTA of 128x128: 8 warps");
static_assert(kVectorsA % kThreads == 0 && kVectorsB % kThreads == 0, "every thread loads the same number of vectors");
static_assert(kWarps * kFragment * kFragment * sizeof(float) <= kSharedHalves * sizeof(half),
              "the tiles' memory also stages the results");

using FragmentA = wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float>;

// Copies a rows x cols tile of vectors; what lies past the matrix becomes 0.
template <int kRows, int kCols, int kPitch>
__device__ void load_tile(half* to, const half* from, int row, int col, int rows, int cols) {
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kCols / kVector; i += kThreads) {
    const int y = i / (kCols / kVector), x = i % (kCols / kVector) * kVector;
    const bool inside = row + y < rows && col + x < cols;
    *reinterpret_cast<uint4*>(to + y * kPitch + x) =
        inside ? *reinterpret_cast<const uint4*>(from + size_t(row + y) * cols + col + x) : make_uint4(0, 0, 0, 0);
  }
}

__device__ void multiply_tile(const half* tile_a, const half* tile_b, int warp_row, int warp_col,
                              Accumulator (&sum)[kFragmentsM][kFragmentsN]) {
#pragma unroll
  for (int kk = 0; kk < kBlockK; kk += kFragment) {
    FragmentA fa[kFragmentsM];
    FragmentB fb[kFragmentsN];
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
      wmma::load_matrix_sync(fa[i], tile_a + (warp_row + i * kFragment) * kPitchA + kk, kPitchA);
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j)
      wmma::load_matrix_sync(fb[j], tile_b + kk * kPitchB + warp_col + j * kFragment, kPitchB);
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
  }
}

// Rounds a warp's results to fp16. Through shared memory, since which lane holds which element is WMMA's secret.
__device__ void store_results(float* stage, const Accumulator (&sum)[kFragmentsM][kFragmentsN], half* c, int row,
                              int col, int m, int n) {
  const int lane = threadIdx.x % 32, y = lane / 2, x = lane % 2 * kVector;
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(stage, sum[i][j], kFragment, wmma::mem_row_major);
      __syncwarp();
      const float4* from = reinterpret_cast<const float4*>(stage + y * kFragment + x);
      const float4 low = from[0], high = from[1];
      half2 rounded[kVector / 2] = {__floats2half2_rn(low.x, low.y), __floats2half2_rn(low.z, low.w),
                                    __floats2half2_rn(high.x, high.y), __floats2half2_rn(high.z, high.w)};
      const int to_row = row + i * kFragment, to_col = col + j * kFragment;
      if (to_row < m && to_col < n)  // whole fragments: M and N are multiples of 16
        *reinterpret_cast<uint4*>(c + size_t(to_row + y) * n + to_col + x) = *reinterpret_cast<uint4*>(rounded);
      __syncwarp();
    }
}

__global__ void __launch_bounds__(kThreads, 2)
    hgemm_wmma(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ c, int m, int n, int k) {
  __shared__ alignas(128) half shared[kSharedHalves];
  half* tile_a = shared;
  half* tile_b = shared + kBlockM * kPitchA;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsN * kWarpM, warp_col = warp % kWarpsN * kWarpN;
  const int row = blockIdx.y * kBlockM, col = blockIdx.x * kBlockN;

  Accumulator sum[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    load_tile<kBlockM, kBlockK, kPitchA>(tile_a, a, row, k0, m, k);
    load_tile<kBlockK, kBlockN, kPitchB>(tile_b, b, k0, col, k, n);
    __syncthreads();
    multiply_tile(tile_a, tile_b, warp_row, warp_col, sum);
    __syncthreads();
  }
  float* stage = reinterpret_cast<float*>(shared) + warp * kFragment * kFragment;
  store_results(stage, sum, c, row + warp_row, col + warp_col, m, n);
}

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const int m = int(call->in[0].shape[0]), k = int(call->in[0].shape[1]), n = int(call->in[1].shape[1]);
  if (m % 16 || n % 16 || k % 16) return int(cudaErrorInvalidValue);
  const dim3 grid((n + kBlockN - 1) / kBlockN, (m + kBlockM - 1) / kBlockM);
  hgemm_wmma<<<grid, kThreads, 0, cudaStream_t(call->stream)>>>(
      static_cast<const half*>(call->in[0].data), static_cast<const half*>(call->in[1].data),
      static_cast<half*>(call->out[0].data), m, n, k);
  return int(cudaGetLastError());
}
