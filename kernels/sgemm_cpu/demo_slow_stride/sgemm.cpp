// BAD ON PURPOSE, for the demo: v3 with B's panels packed by columns. Each step of the inner loop then gathers its vectors
// element by element, a column apart, where v3 reads two vectors in a row.
//
// C = A B in fp32, row-major: operands packed; columns of C by threads.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include "kernelgate.h"

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
typedef float Vector __attribute__((vector_size(kVectorBytes)));
constexpr int kVector = kVectorBytes / sizeof(float);
constexpr int kTileM = 6, kVectorsN = 2, kTileN = kVectorsN * kVector;
constexpr int64_t kBlockM = 96, kBlockN = 256, kBlockK = 256;
constexpr int64_t kPanelA = kBlockM * kBlockK, kPanelB = kBlockN * kBlockK;
constexpr int64_t kThreadFloats = kPanelA + kPanelB;
constexpr double kFlopsPerThread = 8e6;  // about 0.1 ms: starting a thread takes a fifth of that
constexpr int kMaxThreads = 64;

static_assert(kBlockM % kTileM == 0 && kBlockN % kTileN == 0, "blocks are whole tiles");
static_assert(kThreadFloats * sizeof(float) <= 512 * 1024, "a thread's panels stay in its L2");

struct Matrices {
  const float *a, *b;
  float* c;
  int64_t m, n, k;
};

Matrices matrices(const kg_call* call) {
  return {static_cast<const float*>(call->in[0].data), static_cast<const float*>(call->in[1].data),
          static_cast<float*>(call->out[0].data),      call->in[0].shape[0],
          call->in[1].shape[1],                        call->in[0].shape[1]};
}

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  return cores;
}

// Keeps this thread off the core `taken`, where another one is allowed.
void leave(cpu_set_t cores, int taken) {
  CPU_CLR(taken, &cores);
  if (CPU_COUNT(&cores)) sched_setaffinity(0, sizeof(cores), &cores);
}

int threads_for(const Matrices& x) {
  const int64_t worth = int64_t(2.0 * double(x.m) * double(x.n) * double(x.k) / kFlopsPerThread);
  const cpu_set_t allowed = allowed_cores();
  const int64_t cores = std::max(1, CPU_COUNT(&allowed));
  const int64_t parts = (x.n + kTileN - 1) / kTileN;
  return int(std::max<int64_t>(1, std::min({worth, cores, parts, int64_t(kMaxThreads)})));
}

// Panels of kTileM rows: for each k, the panel's column of A.
void pack_a(float* to, const Matrices& x, int64_t i0, int64_t rows, int64_t p0, int64_t depth) {
  for (int64_t i = 0; i < rows; i += kTileM)
    for (int64_t p = 0; p < depth; ++p)
      for (int r = 0; r < kTileM; ++r) *to++ = i + r < rows ? x.a[(i0 + i + r) * x.k + p0 + p] : 0.0f;
}

// Panels of kTileN columns, one after the other: the panel's stride is `depth`.
void pack_b(float* to, const Matrices& x, int64_t j0, int64_t cols, int64_t p0, int64_t depth) {
  for (int64_t j = 0; j < cols; j += kTileN)
    for (int64_t e = 0; e < kTileN; ++e)
      for (int64_t p = 0; p < depth; ++p) *to++ = j + e < cols ? x.b[(p0 + p) * x.n + j0 + j + e] : 0.0f;
}

// Adds (or, at the first block of k, stores) one tile of rows x cols.
void multiply_tile(const float* a, const float* b, int64_t depth, float* c, int64_t pitch, int64_t rows, int64_t cols,
                   bool first) {
  Vector sum[kTileM][kVectorsN] = {};
  for (int64_t p = 0; p < depth; ++p, a += kTileM) {
    float gathered[kTileN];
    for (int e = 0; e < kTileN; ++e) gathered[e] = b[e * depth + p];
    Vector row[kVectorsN];
    std::memcpy(row, gathered, sizeof(row));
    for (int r = 0; r < kTileM; ++r)
      for (int v = 0; v < kVectorsN; ++v) sum[r][v] += a[r] * row[v];
  }
  float tile[kTileM][kTileN];
  std::memcpy(tile, sum, sizeof(tile));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) c[r * pitch + j] = first ? tile[r][j] : c[r * pitch + j] + tile[r][j];
}

// Columns [first_col, last_col) of C, by one thread, with `panels` of its own.
void multiply_columns(const Matrices& x, int64_t first_col, int64_t last_col, float* panels) {
  float *panel_a = panels, *panel_b = panels + kPanelA;
  for (int64_t p0 = 0; p0 < x.k; p0 += kBlockK) {
    const int64_t depth = std::min(kBlockK, x.k - p0);
    for (int64_t j0 = first_col; j0 < last_col; j0 += kBlockN) {
      const int64_t cols = std::min(kBlockN, last_col - j0);
      pack_b(panel_b, x, j0, cols, p0, depth);
      for (int64_t i0 = 0; i0 < x.m; i0 += kBlockM) {
        const int64_t rows = std::min(kBlockM, x.m - i0);
        pack_a(panel_a, x, i0, rows, p0, depth);
        for (int64_t j = 0; j < cols; j += kTileN)
          for (int64_t i = 0; i < rows; i += kTileM)
            multiply_tile(panel_a + i * depth, panel_b + j * depth, depth, x.c + (i0 + i) * x.n + j0 + j, x.n,
                          std::min<int64_t>(kTileM, rows - i), std::min<int64_t>(kTileN, cols - j), p0 == 0);
      }
    }
  }
}

}  // namespace

extern "C" size_t kernelgate_workspace_bytes(const kg_call* call) {
  return size_t(threads_for(matrices(call))) * kThreadFloats * sizeof(float);
}

extern "C" int kernelgate_run(const kg_call* call) {
  const Matrices x = matrices(call);
  const int64_t parts = std::min<int64_t>(threads_for(x), call->workspace_bytes / (kThreadFloats * sizeof(float)));
  if (parts < 1) return 1;
  const int64_t tiles = (x.n + kTileN - 1) / kTileN;
  const auto part = [&](int64_t t) {
    multiply_columns(x, tiles * t / parts * kTileN, std::min(x.n, tiles * (t + 1) / parts * kTileN),
                     static_cast<float*>(call->workspace) + t * kThreadFloats);
  };
  const cpu_set_t cores = allowed_cores();
  const int parent = sched_getcpu();
  std::thread threads[kMaxThreads];
  for (int64_t t = 1; t < parts; ++t) try {
      threads[t] = std::thread([&, t] {
        leave(cores, parent);
        part(t);
      });
    } catch (const std::system_error&) {
      part(t);  // no more threads to be had here
    }
  part(0);
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  return 0;
}
