// C = A B: fp16 in and out, fp32 accumulate, row-major. ldmatrix + mma.sync over XOR-swizzled tiles, 32 KiB shared.
//
// NOTES:
// - Swizzle: a row's 16-byte chunks are permuted by its row number, so that the 8 rows that ldmatrix reads at one
//   chunk lie in 8 different groups of banks. Padding did the same and cost 5 KiB.
// - ldmatrix hands a lane what mma.sync wants, and mma.sync's layout is documented where WMMA's is not: fragments of
//   the next step are loaded while this one multiplies, across tiles too, and the results are rounded in registers.
// - With two stages, a tile lasts as long as a copy takes and what stands between the barrier and the copy. So the
//   barrier, the copies and nothing else stand in a branch of their own: left to itself, the compiler moved the copies
//   behind half of the products. Their pointers and ldmatrix's addresses are kept, not computed again.
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
static_assert(kMmasM == kMmasN / 2, "as many fragments of B as of A");
static_assert(kWarpN % 16 == 0 && kWarpM % 16 == 0, "ldmatrix.x4 brings 16x16");

// Where a tile of kCols columns keeps the chunk of (row, col): 8 rows at one col meet 8 different groups of 4 banks.
template <int kCols>
__device__ int swizzled(int row, int col) {
  constexpr int kChunks = kCols / kChunk;
  constexpr int kRowsPerLine = kChunks < 8 ? 8 / kChunks : 1;  // rows in 128 bytes, all 32 banks
  constexpr int kMask = kChunks < 8 ? kChunks - 1 : 7;
  return row * kCols + ((col / kChunk) ^ (row / kRowsPerLine & kMask)) * kChunk;
}

__device__ unsigned shared_address(const void* pointer) { return unsigned(__cvta_generic_to_shared(pointer)); }

// One thread's part in copying one operand's tiles: chunks kRowStep rows apart, each with its own pointer.
template <int kRows, int kCols>
struct TileCopy {
  static constexpr int kRowStep = kThreads * kChunk / kCols, kCopies = kRows / kRowStep;
  static_assert(kRowStep % 8 == 0 && kRows % kRowStep == 0, "a thread's chunks all have the same place in their rows");

  const half* from[kCopies];
  unsigned to;

  // Past the matrix its last rows and columns are read again: nobody stores what comes of them.
  __device__ TileCopy(const half* matrix, int row, int col, int rows, int cols) {
    const int y = threadIdx.x / (kCols / kChunk), x = threadIdx.x % (kCols / kChunk) * kChunk;
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      from[i] = matrix + ptrdiff_t(min(row + y + i * kRowStep, rows - 1)) * cols + min(col + x, cols - kChunk);
    to = swizzled<kCols>(y, x) * sizeof(half);
  }

  // Of each chunk `bytes`, 16 or 0, are read; the rest is zeros.
  __device__ void start(unsigned tile, const int (&bytes)[kCopies], ptrdiff_t advance) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                       tile + to + unsigned(i * kRowStep * kCols * sizeof(half))),
                   "l"(from[i]), "r"(bytes[i])
                   : "memory");
#pragma unroll
    for (int i = 0; i < kCopies; ++i) from[i] += advance;
  }
};

// One operand's part of mma.sync: 16 rows of A, or 16 columns of B.
struct Fragment {
  unsigned part[4];
};

// Where a lane's rows for ldmatrix begin, in bytes from their tile. Another step of A differs in bits of the chunk
// that the swizzle leaves alone, and XOR finds it.
struct FragmentRows {
  unsigned a, b[kMmasN / 2];

  __device__ FragmentRows(int warp_row, int warp_col) {
    const int lane = threadIdx.x % 32, y = lane % 16, x = lane / 16 * kChunk;
    a = swizzled<kBlockK>(warp_row + y, x) * sizeof(half);
#pragma unroll
    for (int j = 0; j < kMmasN / 2; ++j) b[j] = swizzled<kBlockN>(y, warp_col + j * 16 + x) * sizeof(half);
  }
};

__device__ void load_a(Fragment& f, unsigned tile, const FragmentRows& rows, int step, int i) {
  const unsigned from = (rows.a ^ unsigned(step * kMmaK * sizeof(half))) + unsigned(i * kMmaM * kBlockK * sizeof(half));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.part[0]), "=r"(f.part[1]), "=r"(f.part[2]), "=r"(f.part[3])
               : "r"(tile + from)
               : "memory");
}

__device__ void load_b(Fragment& f, unsigned tile, const FragmentRows& rows, int step, int j) {
  const unsigned from = rows.b[j] + unsigned((kStageA + step * kMmaK * kBlockN) * sizeof(half));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"  // mma.sync wants B by columns
               : "=r"(f.part[0]), "=r"(f.part[1]), "=r"(f.part[2]), "=r"(f.part[3])
               : "r"(tile + from)
               : "memory");
}

using Sums = float[kMmasM][kMmasN][4];

__device__ void multiply(float (&sum)[kMmasN][4], const Fragment& a, const Fragment (&b)[kMmasN / 2]) {
#pragma unroll
  for (int j = 0; j < kMmasN; ++j)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
        : "r"(a.part[0]), "r"(a.part[1]), "r"(a.part[2]), "r"(a.part[3]), "r"(b[j / 2].part[j % 2 * 2]),
          "r"(b[j / 2].part[j % 2 * 2 + 1]));
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
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsN * kWarpM, warp_col = warp % kWarpsN * kWarpN;

  const int tiles_m = (m + kBlockM - 1) / kBlockM, tiles_n = (n + kBlockN - 1) / kBlockN;
  const int group = blockIdx.x / (kGroupM * tiles_n), in_group = blockIdx.x % (kGroupM * tiles_n);
  const int group_m = min(kGroupM, tiles_m - group * kGroupM);  // the last group may be lower
  const int row = (group * kGroupM + in_group % group_m) * kBlockM, col = in_group / group_m * kBlockN;

  const int tiles_k = (k + kBlockK - 1) / kBlockK;
  TileCopy<kBlockM, kBlockK> copy_a(a, row, 0, m, k);
  TileCopy<kBlockK, kBlockN> copy_b(b, 0, col, k, n);
  static_assert(copy_a.kCopies == 4 && copy_b.kCopies == 4, "B's first two chunks lie in the first 16 rows");
  const unsigned shared = shared_address(raw);
  const auto stage = [&](int tile) { return shared + tile % kStages * unsigned(kStage * sizeof(half)); };
  const bool first_half = threadIdx.x % (kBlockK / kChunk) * kChunk < kBlockK / 2;
  const ptrdiff_t next_b = ptrdiff_t(kBlockK) * n;
  int left = k;  // a multiple of 16: half of the last tile may be zeros, and tiles past it are
  const auto start_stage = [&](int tile) {
    const int first = left > 0 ? 16 : 0, second = left > kBlockK / 2 ? 16 : 0, mine = first_half ? first : second;
    copy_a.start(stage(tile), {mine, mine, mine, mine}, kBlockK);
    copy_b.start(stage(tile) + unsigned(kStageA * sizeof(half)), {first, first, second, second}, next_b);
    __pipeline_commit();
    left -= kBlockK;
  };

  const FragmentRows rows(warp_row, warp_col);
  Fragment fragments_a[kMmasM], fragments_b[kSteps][kMmasN / 2];
  Sums sum = {};
  // One step's products; the next step's fragments are loaded as their registers become free.
  const auto multiply_and_load = [&](int step, int next_tile, int next_step) {
#pragma unroll
    for (int i = 0; i < kMmasM; ++i) {
      load_b(fragments_b[next_step][i], stage(next_tile), rows, next_step, i);
      multiply(sum[i], fragments_a[i], fragments_b[step]);
      load_a(fragments_a[i], stage(next_tile), rows, next_step, i);
    }
  };

  for (int tile = 0; tile < kStages; ++tile) start_stage(tile);
  __pipeline_wait_prior(kStages - 1);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kMmasM; ++i) {
    load_a(fragments_a[i], stage(0), rows, 0, i);
    load_b(fragments_b[0][i], stage(0), rows, 0, i);
  }
  for (int tile = 0; tile < tiles_k; ++tile) {
    multiply_and_load(0, tile, 1);
    if (tile + 1 < tiles_k) {              // a branch that keeps the copies together: see the notes
      __pipeline_wait_prior(kStages - 2);  // the next tile is here,
      __syncthreads();                     // and nobody reads this one any more
      start_stage(tile + kStages);
    }
    multiply_and_load(1, tile + 1, 0);  // past the last tile: what the buffer held before, and nobody multiplies it
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  store_results(reinterpret_cast<half*>(raw), sum, c, row, col, warp_row, warp_col, m, n);
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
