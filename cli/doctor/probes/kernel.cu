extern "C" __global__ void probe(int* out) {
  out[threadIdx.x] = 3 * threadIdx.x + 1;
}
