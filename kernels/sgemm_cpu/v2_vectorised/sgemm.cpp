// C = A B in fp32, row-major: a tile of C lives in vector registers for the whole sum.
//
// NOTES: 6 rows by 2 vectors are 12 sums; with 2 vectors of B and 1 value of A they fit 16 registers. C is written
// once, and a value loaded from B serves 6 multiply-adds, one from A 2. GCC's vector types stand for whatever the
// machine has; no instruction set is named but for its width.
#include <cstring>
#include <utility>

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

struct Matrices {
  const float *a, *b;
  float* c;
  int64_t m, n, k;
};

// Rows [i, i + kRows) by columns [j, j + kTileN) of C.
template <int kRows>
void multiply_tile(const Matrices& x, int64_t i, int64_t j) {
  Vector sum[kRows][kVectorsN] = {};
  for (int64_t p = 0; p < x.k; ++p) {
    Vector row[kVectorsN];
    std::memcpy(row, x.b + p * x.n + j, sizeof(row));  // an unaligned load
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectorsN; ++v) sum[r][v] += x.a[(i + r) * x.k + p] * row[v];
  }
  for (int r = 0; r < kRows; ++r) std::memcpy(x.c + (i + r) * x.n + j, sum[r], sizeof(sum[r]));
}

// What is left over of the rows after whole tiles: the same code for 1 to kTileM - 1 rows.
template <int... kRows>
void multiply_rest(const Matrices& x, int64_t i, int64_t j, std::integer_sequence<int, kRows...>) {
  (void)((x.m - i == kRows + 1 && (multiply_tile<kRows + 1>(x, i, j), true)) || ...);
}

}  // namespace

extern "C" int kernelgate_run(const kg_call* call) {
  const Matrices x = {static_cast<const float*>(call->in[0].data), static_cast<const float*>(call->in[1].data),
                      static_cast<float*>(call->out[0].data), call->in[0].shape[0], call->in[1].shape[1],
                      call->in[0].shape[1]};
  int64_t j = 0;
  for (; j + kTileN <= x.n; j += kTileN) {
    int64_t i = 0;
    for (; i + kTileM <= x.m; i += kTileM) multiply_tile<kTileM>(x, i, j);
    multiply_rest(x, i, j, std::make_integer_sequence<int, kTileM - 1>());
  }
  for (int64_t i = 0; i < x.m; ++i)  // columns that fill no tile
    for (int64_t right = j; right < x.n; ++right) {
      float sum = 0.0f;
      for (int64_t p = 0; p < x.k; ++p) sum += x.a[i * x.k + p] * x.b[p * x.n + right];
      x.c[i * x.n + right] = sum;
    }
  return 0;
}
