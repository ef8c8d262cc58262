/* What a CUDA or C++ revision implements: kernelgate_run, and kernelgate_workspace_bytes where it needs workspace. */
#ifndef KERNELGATE_H
#define KERNELGATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_FP16 0
#define KG_FP32 1

/* Dense and row-major; shape and stride in elements, unused axes 0. */
typedef struct {
  void* data;
  int64_t shape[4];
  int64_t stride[4];
  int32_t rank;
  int32_t dtype;
} kg_tensor;

/* A dimension of the case: m, n, k; batch, heads, kv_heads, seqlen, head_dim, causal. */
typedef struct {
  const char* name;
  int64_t value;
} kg_param;

/* One call. Tensors in the operator's order: gemm A, B -> C; attention Q, K, V -> O.
 * `stream` is a cudaStream_t under capture (NULL on a CPU). Neither allocate nor synchronise; on a CPU, every thread
 * that a call starts has ended when it returns. */
typedef struct {
  const kg_tensor* in;
  const kg_tensor* out;
  const kg_param* params;
  int32_t n_in;
  int32_t n_out;
  int32_t n_params;
  int32_t reserved;
  void* workspace;
  size_t workspace_bytes;
  void* stream;
} kg_call;

/* The value of a dimension; -1 where the case has none of that name. */
static inline int64_t kg_param_value(const kg_call* call, const char* name) {
  for (int32_t i = 0; i < call->n_params; ++i)
    if (strcmp(call->params[i].name, name) == 0) return call->params[i].value;
  return -1;
}

#if defined(__GNUC__)
#define KG_EXPORT __attribute__((visibility("default")))
#else
#define KG_EXPORT
#endif

/* 0, or an error of the revision's own: any other value fails the call. */
KG_EXPORT int kernelgate_run(const kg_call* call);

/* Bytes of workspace that a call of these shapes needs (data pointers may be NULL). Optional. */
KG_EXPORT size_t kernelgate_workspace_bytes(const kg_call* call);

#ifdef __cplusplus
}
#endif
#endif
