// The judge's own kernels, compiled by NVRTC without headers.
typedef unsigned int u32;
typedef unsigned long long u64;

// Philox4x32 with 7 rounds, which passes BigCrush (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC11).
__device__ __forceinline__ void philox(u64 index, u32 kind, u64 seed, u32 out[4]) {
  u32 c0 = (u32)index, c1 = (u32)(index >> 32), c2 = kind, c3 = 0;
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    u32 hi0 = __umulhi(0xD2511F53u, c0), lo0 = 0xD2511F53u * c0;
    u32 hi1 = __umulhi(0xCD9E8D57u, c2), lo1 = 0xCD9E8D57u * c2;
    c0 = hi1 ^ c1 ^ k0;
    c1 = lo1;
    c2 = hi0 ^ c3 ^ k1;
    c3 = lo0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0; out[1] = c1; out[2] = c2; out[3] = c3;
}

// Four draws of N(0, 1) (Box-Muller; the tail ends at 6.8) or of [-1, 1).
__device__ __forceinline__ void draw4(u64 index, u32 kind, u64 seed, float out[4]) {
  u32 bits[4];
  philox(index, kind, seed, bits);
  if (kind == 0) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      float u = fmaf(__uint2float_rn(bits[i]), 2.3283064365386963e-10f, 1.1641532182693481e-10f);
      float r = sqrtf(fmaxf(-2.0f * __logf(u), 0.0f)), s, c;
      __sincosf(fmaf(__uint2float_rn(bits[i + 1]), 1.4629180792671596e-9f, -3.141592653589793f), &s, &c);
      out[i] = r * c;
      out[i + 1] = r * s;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = (float)((int)bits[i] >> 8) * 1.1920928955078125e-07f;
  }
}

// Eight draws for fp16, whose 11 bits 16 of the generator's feed as well as 32 (the tail of N(0, 1) ends at 4.9).
__device__ __forceinline__ void draw8(u64 index, u32 kind, u64 seed, float out[8]) {
  u32 bits[4];
  philox(index, kind, seed, bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (kind == 0) {
      const float u = fmaf(__uint2float_rn(bits[i] & 0xFFFFu), 1.52587890625e-5f, 7.62939453125e-6f);
      const float r = sqrtf(fmaxf(-2.0f * __logf(u), 0.0f));
      float s, c;
      __sincosf(fmaf(__uint2float_rn(bits[i] >> 16), 9.587379924285257e-5f, -3.141592653589793f), &s, &c);
      out[2 * i] = r * c;
      out[2 * i + 1] = r * s;
    } else {
      // What rounds to 1 in fp16 is no draw of [-1, 1).
      out[2 * i] = fminf((float)((int)(bits[i] << 16) >> 16) * 3.0517578125e-5f, 0.99951171875f);
      out[2 * i + 1] = fminf((float)((int)bits[i] >> 16) * 3.0517578125e-5f, 0.99951171875f);
    }
  }
}

__device__ __forceinline__ u32 half2_of(float low, float high) {
  u32 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Sixteen bytes at `at`, of which `left` are its own: written, or, with `differs`, only compared.
__device__ __forceinline__ void put(unsigned char* at, uint4 packed, u64 left, u32* differs) {
  if (left >= 16 && ((u64)at & 15) == 0) {
    if (!differs) {
      *(uint4*)at = packed;
    } else {
      const uint4 found = *(const uint4*)at;
      if (found.x != packed.x || found.y != packed.y || found.z != packed.z || found.w != packed.w) *differs = 1;
    }
    return;
  }
  const u32 part[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (u32 i = 0; i < 16; ++i) {
    const unsigned char byte = (unsigned char)(part[i / 4] >> 8 * (i % 4));
    if (i < left && !differs) at[i] = byte;
    if (i < left && differs && at[i] != byte) *differs = 1;
  }
}

// Slot s's elements [0, elements) at base + s * slot_stride (bytes): eight fp16 or four fp32 a step. With `differs`
// nothing is written, and it is set where memory does not hold what would have been.
extern "C" __global__ void fill(unsigned char* base, u64 slot_stride, u64 elements, const u64* seeds, u32 slots, u32 kind,
                                u32 half_precision, u32* differs) {
  const u32 width = half_precision ? 8 : 4, size = half_precision ? 2 : 4;
  for (u32 slot = blockIdx.y; slot < slots; slot += gridDim.y) {
    unsigned char* to = base + slot * slot_stride;
    const u64 seed = seeds[slot];
    for (u64 step = blockIdx.x * (u64)blockDim.x + threadIdx.x; step * width < elements; step += (u64)gridDim.x * blockDim.x) {
      uint4 packed;
      float value[8];
      if (half_precision) {
        draw8(step, kind, seed, value);
        packed = make_uint4(half2_of(value[0], value[1]), half2_of(value[2], value[3]), half2_of(value[4], value[5]),
                            half2_of(value[6], value[7]));
      } else {
        draw4(step, kind, seed, value);
        packed = make_uint4(__float_as_uint(value[0]), __float_as_uint(value[1]), __float_as_uint(value[2]),
                            __float_as_uint(value[3]));
      }
      put(to + step * 16, packed, (elements - step * width) * size, differs);
    }
  }
}

// The same 32 bits all over `bytes` of each listed slot; with `differs` nothing is written, as above.
extern "C" __global__ void words(unsigned char* base, u64 slot_stride, u64 bytes, const u32* slots, u32 count, u32 word,
                                 u32* differs) {
  const uint4 packed = make_uint4(word, word, word, word);
  for (u32 place = blockIdx.y; place < count; place += gridDim.y) {
    unsigned char* to = base + slots[place] * slot_stride;
    for (u64 at = 16 * (blockIdx.x * (u64)blockDim.x + threadIdx.x); at < bytes; at += 16 * (u64)gridDim.x * blockDim.x) {
      put(to + at, packed, bytes - at, differs);
    }
  }
}

// Does nothing: how long it takes says whether the GPU is the judge's alone.
extern "C" __global__ void probe() {}

__device__ __forceinline__ float half_bits(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ __forceinline__ float element(const unsigned char* from, u64 index, u32 half_precision) {
  return half_precision ? half_bits(((const unsigned short*)from)[index]) : ((const float*)from)[index];
}

// One warp a row: products[s][r] = row . vector of slot s, squares[s][r] = row . row. Rows are dense.
template <typename Work>
__device__ __forceinline__ void rows_with_vectors(const unsigned char* base, u64 slot_stride, const u32* slots, u32 count,
                                                  u32 rows, u32 columns, u32 half_precision, const Work* vectors,
                                                  u64 vector_stride, Work* products, Work* squares) {
  const u32 lane = threadIdx.x & 31;
  const u64 warps = (u64)gridDim.x * blockDim.x / 32;
  for (u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; at < (u64)count * rows; at += warps) {
    const u64 slot = at / rows, row = at % rows;
    const unsigned char* from = base + slots[slot] * slot_stride + row * columns * (half_precision ? 2 : 4);
    const Work* vector = vectors + slot * vector_stride;
    Work product = 0, square = 0;
    if (half_precision && columns % 8 == 0 && ((u64)from & 15) == 0) {
      for (u32 column = lane * 8; column < columns; column += 256) {
        const uint4 packed = *(const uint4*)(from + 2 * (u64)column);
        const unsigned short* part = (const unsigned short*)&packed;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const Work value = half_bits(part[i]);
          product += value * vector[column + i];
          square += value * value;
        }
      }
    } else {
      for (u32 column = lane; column < columns; column += 32) {
        const Work value = element(from, column, half_precision);
        product += value * vector[column];
        square += value * value;
      }
    }
#pragma unroll
    for (int away = 16; away; away /= 2) {
      product += __shfl_xor_sync(0xFFFFFFFFu, product, away);
      square += __shfl_xor_sync(0xFFFFFFFFu, square, away);
    }
    if (lane == 0) {
      products[at] = product;
      squares[at] = square;
    }
  }
}

// One thread a column: kSampledRows rows of left @ right and of |left| @ |right|, for each chosen slot.
constexpr u32 kSampledRows = 4, kSampledBlock = 256;

template <typename Work>
__device__ __forceinline__ void sampled_rows(const unsigned char* left, u64 left_stride, const unsigned char* right,
                                             u64 right_stride, const u32* slots, u32 count, const u32* rows, u32 k,
                                             u32 columns, u32 half_precision, Work* products, Work* absolutes) {
  __shared__ Work some[kSampledRows][kSampledBlock];
  const u32 size = half_precision ? 2 : 4, column = blockIdx.x * kSampledBlock + threadIdx.x;
  for (u32 slot = blockIdx.y; slot < count; slot += gridDim.y) {
    const unsigned char* a = left + slots[slot] * left_stride;
    const unsigned char* b = right + slots[slot] * right_stride;
    Work product[kSampledRows] = {}, absolute[kSampledRows] = {};
    for (u32 first = 0; first < k; first += kSampledBlock) {
      __syncthreads();
#pragma unroll
      for (u32 r = 0; r < kSampledRows; ++r) {
        const u64 row = rows[slot * kSampledRows + r];
        some[r][threadIdx.x] =
            first + threadIdx.x < k ? (Work)element(a + row * k * size, first + threadIdx.x, half_precision) : (Work)0;
      }
      __syncthreads();
      const u32 here = min(kSampledBlock, k - first);
      if (column < columns) {
#pragma unroll 8
        for (u32 i = 0; i < here; ++i) {
          const Work value = element(b, (u64)(first + i) * columns + column, half_precision);
#pragma unroll
          for (u32 r = 0; r < kSampledRows; ++r) {
            const Work term = some[r][i] * value;
            product[r] += term;
            absolute[r] += term < 0 ? -term : term;
          }
        }
      }
    }
    if (column < columns) {
#pragma unroll
      for (u32 r = 0; r < kSampledRows; ++r) {
        const u64 to = ((u64)slot * kSampledRows + r) * columns + column;
        products[to] = product[r];
        absolutes[to] = absolute[r];
      }
    }
  }
}

#define KERNELS(suffix, Work)                                                                                           \
  extern "C" __global__ void rows_with_vectors_##suffix(                                                                \
      const unsigned char* base, u64 slot_stride, const u32* slots, u32 count, u32 rows, u32 columns,                   \
      u32 half_precision, const Work* vectors, u64 vector_stride, Work* products, Work* squares) {                      \
    rows_with_vectors(base, slot_stride, slots, count, rows, columns, half_precision, vectors, vector_stride, products, \
                      squares);                                                                                         \
  }                                                                                                                     \
  extern "C" __global__ void sampled_rows_##suffix(                                                                     \
      const unsigned char* left, u64 left_stride, const unsigned char* right, u64 right_stride, const u32* slots,       \
      u32 count, const u32* rows, u32 k, u32 columns, u32 half_precision, Work* products, Work* absolutes) {            \
    sampled_rows(left, left_stride, right, right_stride, slots, count, rows, k, columns, half_precision, products,      \
                 absolutes);                                                                                            \
  }
KERNELS(f64, double)
KERNELS(f32, float)
