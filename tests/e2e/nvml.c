// Stands in for NVIDIA's management library on a machine without a card: one H200, of whose memory so many bytes are in
// use as the file says that NVIDIA_STAND_IN_USED names.
#include <stdio.h>
#include <stdlib.h>

int nvmlInitWithFlags(unsigned int flags) { return (void)flags, 0; }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return (void)code, "an error"; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = (void*)1;
  return index == 0 ? 0 : 2;
}

static int text(char* to, unsigned int length, const char* from) {
  snprintf(to, length, "%s", from);
  return 0;
}

int nvmlDeviceGetName(void* device, char* name, unsigned int length) {
  return (void)device, text(name, length, "NVIDIA H200");
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  return (void)device, text(uuid, length, "GPU-0");
}

int nvmlSystemGetDriverVersion(char* version, unsigned int length) { return text(version, length, "580.1"); }

int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  (void)device;
  const char* name = getenv("NVIDIA_STAND_IN_USED");
  FILE* file = name ? fopen(name, "r") : NULL;
  if (!file) return 3;  // not supported
  const int read = fscanf(file, "%llu", &total_free_used[2]);
  fclose(file);
  return read == 1 ? 0 : 999;
}
