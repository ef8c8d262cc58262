// C = A B: fp16 in and out, fp32 accumulate, row-major. ldmatrix + mma.sync over XOR-swizzled tiles, 32 KiB shared.
//
// NOTES:
// - Swizzle: a row's 16-byte chunks are permuted by its row number, so that the 8 rows that ldmatrix reads at one
//   chunk lie in 8 different groups of banks. Padding did the same and cost 5 KiB.
// - ldmatrix hands a lane what mma.sync wants, and mma.sync's layout is documented where WMMA's is not: fragments of
//   the next step are loaded while this one multiplies, across tiles too, and the results are rounded in registers.
// - The buffer of a tile is free once its last fragments are in registers, one step before its end. There the barrier
//   stands, and the tile after the next begins to arrive: a copy has a whole tile's time.
// - CTAs run in groups of kGroupM rows of tiles, so that those at work together share rows of A and columns of B in L2.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "kernelgate.h"

namespace {

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 32;
constexpr int kWarpM = 64, kWarpN = 64;
constexpr int kStages = 2;
constexpr int kMinBlocks = 2;  // CTAs a multiprocessor: one multiplies while another waits at its barrier
constexpr int kGroupM = 8;
constexpr int kMmaM = 16, kMmaN = 8, kMmaK = 16;
constexpr int kWarpsN = kBlockN / kWarpN, kThreads = kBlockM / kWarpM * kWarpsN * 32;
constexpr int kMmasM = kWarpM / kMmaM, kMmasN = kWarpN / kMmaN, kSteps = kBlockK / kMmaK;
constexpr int kChunk = 8;  // halves in 16 bytes: one cp.async, one row of an ldmatrix
constexpr int kStageA = kBlockM * kBlockK, kStageB = kBlockK * kBlockN, kStage = kStageA + kStageB;
constexpr int kTileBytes = kStages * kStage * sizeof(half), kResultBytes = kBlockM * kBlockN * sizeof(half);
constexpr int kSharedBytes = kTileBytes > kResultBytes ? kTileBytes : kResultBytes;

static_assert(kSharedBytes == 32 * 1024, "two stages, and the CTA's results, take 32 KiB");
static_assert(kSteps == 2, "fragments alternate between two sets of registers");
static_assert(kWarpN % 16 == 0 && kWarpM % 16 == 0, "ldmatrix.x4 brings 16x16");

// Where a tile of kCols columns keeps the chunk of (row, col): 8 rows at one col meet 8 different groups of 4 banks.
template <int kCols>
__device__ int swizzled(int row, int col) {
  constexpr int kChunks = kCols / kChunk;
  constexpr int kRowsPerLine = kChunks < 8 ? 8 / kChunks : 1;  // rows in 128 bytes, all 32 banks
  constexpr int kMask = kChunks < 8 ? kChunks - 1 : 7;
  return row * kCols + ((col / kChunk) ^ (row / kRowsPerLine & kMask)) * kChunk;
}

// One thread's part in copying one operand's tiles: chunks kRowStep rows apart; past the matrix they become 0.
template <int kRows, int kCols>
struct TileCopy {
  static constexpr int kRowStep = kThreads * kChunk / kCols;
  static_assert(kRowStep % 8 == 0 && kRows % kRowStep == 0, "a thread's chunks all have the same place in their rows");

  const half* from;
  int to, pitch, rows_left, cols_left;

  __device__ TileCopy(const half* matrix, int row, int col, int rows, int cols) : pitch(cols) {
    const int y = threadIdx.x / (kCols / kChunk), x = threadIdx.x % (kCols / kChunk) * kChunk;
    from = matrix + ptrdiff_t(row + y) * cols + col + x;
    to = swizzled<kCols>(y, x);
    rows_left = rows - row - y;
    cols_left = cols - col - x;
  }

  __device__ void start(half* tile) const {
#pragma unroll
    for (int y = 0; y < kRows; y += kRowStep) {
      const bool inside = y < rows_left && cols_left > 0;
      __pipeline_memcpy_async(tile + to + y * kCols, from + ptrdiff_t(y) * pitch, sizeof(uint4),
                              inside ? 0 : sizeof(uint4));
    }
  }

  __device__ void advance(int rows, int cols) {
    from += ptrdiff_t(rows) * pitch + cols;
    rows_left -= rows;
    cols_left -= cols;
  }
};

struct Fragments {
  unsigned a[kMmasM][4];
  unsigned b[kMmasN][2];
};

__device__ void load_fragments(Fragments& f, const half* tile_a, const half* tile_b, int warp_row, int warp_col,
                               int step) {
  const int lane = threadIdx.x % 32, y = lane % 16, x = lane / 16 * kChunk;
#pragma unroll
  for (int i = 0; i < kMmasM; ++i) {
    const half* from = tile_a + swizzled<kBlockK>(warp_row + i * kMmaM + y, step * kMmaK + x);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.a[i][0]), "=r"(f.a[i][1]), "=r"(f.a[i][2]), "=r"(f.a[i][3])
                 : "r"(unsigned(__cvta_generic_to_shared(from)))
                 : "memory");
  }
#pragma unroll
  for (int j = 0; j < kMmasN; j += 2) {  // transposed: mma.sync wants B by columns
    const half* from = tile_b + swizzled<kBlockN>(step * kMmaK + y, warp_col + j * kMmaN + x);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.b[j][0]), "=r"(f.b[j][1]), "=r"(f.b[j + 1][0]), "=r"(f.b[j + 1][1])
                 : "r"(unsigned(__cvta_generic_to_shared(from)))
                 : "memory");
  }
}

using Sums = float[kMmasM][kMmasN][4];

__device__ void multiply(Sums& sum, const Fragments& f) {
#pragma unroll
  for (int i = 0; i < kMmasM; ++i)
#pragma unroll
    for (int j = 0; j < kMmasN; ++j)
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
          : "r"(f.a[i][0]), "r"(f.a[i][1]), "r"(f.a[i][2]), "r"(f.a[i][3]), "r"(f.b[j][0]), "r"(f.b[j][1]));
}

// Through shared memory: a lane's own results are pairs, 4 bytes; whole rows of the tile leave as 16-byte stores.
__device__ void store_results(half* stage, const Sums& sum, half* c, int row, int col, int warp_row, int warp_col,
                              int m, int n) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kMmasM; ++i)
#pragma unroll
    for (int j = 0; j < kMmasN; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // registers 0, 1 and 2, 3 are 8 rows apart
        const int y = warp_row + i * kMmaM + h * 8 + lane / 4, x = warp_col + j * kMmaN;
        *reinterpret_cast<half2*>(stage + swizzled<kBlockN>(y, x) + lane % 4 * 2) =
            __floats2half2_rn(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
      }
  __syncthreads();
  for (int i = threadIdx.x; i < kBlockM * kBlockN / kChunk; i += kThreads) {
    const int y = i / (kBlockN / kChunk), x = i % (kBlockN / kChunk) * kChunk;
    if (row + y < m && col + x < n)
      *reinterpret_cast<uint4*>(c + size_t(row + y) * n + col + x) =
          *reinterpret_cast<const uint4*>(stage + swizzled<kBlockN>(y, x));
  }
}

__global__ void __launch_bounds__(kThreads, kMinBlocks)
    hgemm_swizzle(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ c, int m, int n, int k) {
  extern __shared__ uint4 raw[];
  half* shared = reinterpret_cast<half*>(raw);
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsN * kWarpM, warp_col = warp % kWarpsN * kWarpN;

  const int tiles_m = (m + kBlockM - 1) / kBlockM, tiles_n = (n + kBlockN - 1) / kBlockN;
  const int group = blockIdx.x / (kGroupM * tiles_n), in_group = blockIdx.x % (kGroupM * tiles_n);
  const int group_m = min(kGroupM, tiles_m - group * kGroupM);  // the last group may be lower
  const int row = (group * kGroupM + in_group % group_m) * kBlockM, col = in_group / group_m * kBlockN;

  const int tiles_k = (k + kBlockK - 1) / kBlockK;
  TileCopy<kBlockM, kBlockK> copy_a(a, row, 0, m, k);
  TileCopy<kBlockK, kBlockN> copy_b(b, 0, col, k, n);
  const auto start_stage = [&](int tile) {
    half* to = shared + tile % kStages * kStage;
    if (tile < tiles_k) {
      copy_a.start(to);
      copy_b.start(to + kStageA);
      copy_a.advance(0, kBlockK);
      copy_b.advance(kBlockK, 0);
    }
    __pipeline_commit();  // empty past the end, so that the number of groups under way is always the same
  };
  Fragments fragments[2];
  const auto load = [&](int tile, int step) {
    const half* from = shared + tile % kStages * kStage;
    load_fragments(fragments[step], from, from + kStageA, warp_row, warp_col, step);
  };

  for (int tile = 0; tile < kStages; ++tile) start_stage(tile);
  __pipeline_wait_prior(kStages - 1);
  __syncthreads();
  load(0, 0);
  Sums sum = {};
  for (int tile = 0; tile < tiles_k; ++tile) {
    load(tile, 1);
    multiply(sum, fragments[0]);
    __pipeline_wait_prior(kStages - 2);  // the next tile is here,
    __syncthreads();                     // and nobody reads this one any more
    start_stage(tile + kStages);
    load(tile + 1, 0);  // past the last tile: what the buffer held before, and nobody multiplies it
    multiply(sum, fragments[1]);
  }
  __syncthreads();
  store_results(shared, sum, c, row, col, warp_row, warp_col, m, n);
}

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const int m = int(call->in[0].shape[0]), k = int(call->in[0].shape[1]), n = int(call->in[1].shape[1]);
  if (m % 16 || n % 16 || k % 16) return int(cudaErrorInvalidValue);
  const int tiles = (m + kBlockM - 1) / kBlockM * ((n + kBlockN - 1) / kBlockN);
  hgemm_swizzle<<<tiles, kThreads, kSharedBytes, cudaStream_t(call->stream)>>>(
      static_cast<const half*>(call->in[0].data), static_cast<const half*>(call->in[1].data),
      static_cast<half*>(call->out[0].data), m, n, k);
  return int(cudaGetLastError());
}
