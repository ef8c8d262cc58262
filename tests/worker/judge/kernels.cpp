// Entry points for the judge's tests: an honest SGEMM, and others that are wrong, harmful or dishonest.
#include <kernelgate.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

struct Gemm {
  const float *a, *b;
  float* c;
  int m, n, k;
};

static Gemm unpack(const kg_call* call) {
  return {static_cast<const float*>(call->in[0].data),
          static_cast<const float*>(call->in[1].data),
          static_cast<float*>(call->out[0].data),
          static_cast<int>(kg_param_value(call, "m")),
          static_cast<int>(kg_param_value(call, "n")),
          static_cast<int>(kg_param_value(call, "k"))};
}

static void multiply(const Gemm& g) {
  for (int i = 0; i < g.m; ++i) {
    float* row = g.c + static_cast<size_t>(i) * g.n;
    for (int j = 0; j < g.n; ++j) row[j] = 0.0f;
    for (int p = 0; p < g.k; ++p) {
      const float x = g.a[static_cast<size_t>(i) * g.k + p];
      const float* other = g.b + static_cast<size_t>(p) * g.n;
      for (int j = 0; j < g.n; ++j) row[j] += x * other[j];
    }
  }
}

static size_t size_of_c(const Gemm& g) { return static_cast<size_t>(g.m) * g.n; }

#define ENTRY extern "C" KG_EXPORT int

ENTRY good(const kg_call* call) {
  multiply(unpack(call));
  return 0;
}

// The order of its sums changes, as with atomic additions: right, and other bits each time.
ENTRY sums_in_another_order_each_time(const kg_call* call) {
  static unsigned calls = 0;
  const Gemm g = unpack(call);
  if (calls++ % 2 == 0) {
    multiply(g);
    return 0;
  }
  for (int i = 0; i < g.m; ++i)
    for (int j = 0; j < g.n; ++j) {
      float sum = 0.0f;
      for (int p = g.k - 1; p >= 0; --p) sum += g.a[static_cast<size_t>(i) * g.k + p] * g.b[static_cast<size_t>(p) * g.n + j];
      g.c[static_cast<size_t>(i) * g.n + j] = sum;
    }
  return 0;
}

ENTRY six_times_the_work(const kg_call* call) {
  for (int i = 0; i < 6; ++i) {
    multiply(unpack(call));
    asm volatile("" ::: "memory");
  }
  return 0;
}

ENTRY talkative(const kg_call* call) {
  std::printf("{\"ok\": true}\n");
  std::fflush(stdout);
  multiply(unpack(call));
  return 0;
}

// ---------------------------------------------------------------- wrong

ENTRY zeros(const kg_call* call) {
  const Gemm g = unpack(call);
  std::memset(g.c, 0, size_of_c(g) * sizeof(float));
  return 0;
}

ENTRY drops_tail(const kg_call* call) {
  Gemm g = unpack(call);
  multiply(g);
  for (int i = g.m - g.m % 16 - 16; i < g.m; ++i)
    for (int j = g.n - 8; j < g.n; ++j) g.c[static_cast<size_t>(i) * g.n + j] *= 0.5f;
  return 0;
}

ENTRY low_precision(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  for (size_t i = 0; i < size_of_c(g); ++i) {
    uint32_t bits;
    std::memcpy(&bits, g.c + i, 4);
    bits &= 0xffffe000u;  // TF32's mantissa
    std::memcpy(g.c + i, &bits, 4);
  }
  return 0;
}

ENTRY leaves_nan(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  g.c[size_of_c(g) / 2] = NAN;
  return 0;
}

ENTRY writes_nothing(const kg_call*) { return 0; }

// ---------------------------------------------------------------- harmful

ENTRY writes_outside(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  g.c[size_of_c(g) + 3] = 1.0f;
  return 0;
}

ENTRY writes_before(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  const_cast<float*>(g.a)[-2] = 1.0f;
  return 0;
}

ENTRY writes_next_slot(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  // Of square matrices whose sizes are multiples of 512 bytes; the workspace is one row.
  const size_t pitch = 5 * 4096 + 3 * size_of_c(g) * sizeof(float) + (g.m * sizeof(float) + 511) / 512 * 512;
  reinterpret_cast<float*>(reinterpret_cast<char*>(g.c) + pitch)[5] = 1.0f;
  return 0;
}

ENTRY modifies_input(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  const_cast<float*>(g.b)[7] += 1.0f;
  return 0;
}

ENTRY zeroes_inputs(const kg_call* call) {
  const Gemm g = unpack(call);
  std::memset(const_cast<float*>(g.a), 0, static_cast<size_t>(g.m) * g.k * sizeof(float));
  std::memset(g.c, 0, size_of_c(g) * sizeof(float));
  return 0;
}

ENTRY crashes(const kg_call*) {
  *reinterpret_cast<volatile int*>(8) = 1;
  return 0;
}

ENTRY aborts(const kg_call*) { abort(); }

ENTRY exits(const kg_call*) { _exit(0); }

ENTRY hangs(const kg_call*) {
  for (;;) pause();
}

ENTRY returns_seven(const kg_call*) { return 7; }

// ---------------------------------------------------------------- dishonest

static int calls_so_far = 0;

ENTRY right_then_lazy(const kg_call* call) {
  if (++calls_so_far > 12) return 0;
  return good(call);
}

// Right in verification, whose processes are asked for few calls; later one row is left as the last call had it.
ENTRY wrong_when_warm(const kg_call* call) {
  const Gemm g = unpack(call);
  multiply(g);
  if (++calls_so_far > 12)
    for (int j = 0; j < g.n; ++j) g.c[j] *= 1.001f;
  return 0;
}

static std::map<void*, std::vector<float>> answers;

ENTRY caches_by_pointer(const kg_call* call) {
  const Gemm g = unpack(call);
  std::vector<float>& known = answers[call->out[0].data];
  if (known.empty()) {
    multiply(g);
    known.assign(g.c, g.c + size_of_c(g));
  } else {
    std::memcpy(g.c, known.data(), known.size() * sizeof(float));
  }
  return 0;
}

ENTRY computes_after_return(const kg_call* call) {
  const Gemm g = unpack(call);
  std::thread([g] {
    usleep(20000);
    multiply(g);
  }).detach();
  return 0;
}

// Answers "done" before the work is: the answers' pipe is found by trying.
ENTRY forges_the_answer(const kg_call* call) {
  const char line[] = "{\"ok\": true}\n";
  struct stat about;
  for (int fd = 3; fd < 32; ++fd)
    if (fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) && write(fd, line, sizeof(line) - 1) > 0) break;
  usleep(20000);
  return good(call);
}

// Leaves a process behind that burns a core while its rivals are measured. Its id is written beside the library.
ENTRY leaves_a_process(const kg_call* call) {
  static bool left = false;
  if (!left) {
    left = true;
    const pid_t child = fork();
    if (child == 0) {
      const pid_t left_behind = fork();
      if (left_behind == 0) {
        setsid();
        for (;;) asm volatile("");
      }
      Dl_info about;
      dladdr(reinterpret_cast<void*>(&leaves_a_process), &about);
      char path[4096];
      std::snprintf(path, sizeof(path), "%s.left", about.dli_fname);
      if (FILE* file = std::fopen(path, "a")) {
        std::fprintf(file, "%d\n", static_cast<int>(left_behind));
        std::fclose(file);
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return good(call);
}

// ---------------------------------------------------------------- workspace

extern "C" KG_EXPORT size_t kernelgate_workspace_bytes(const kg_call* call) {
  return getenv("KERNELGATE_TEST") ? 1 : static_cast<size_t>(kg_param_value(call, "m")) * 4;
}

ENTRY uses_workspace(const kg_call* call) {
  if (call->workspace == nullptr || call->workspace_bytes < 4) return 3;
  std::memset(call->workspace, 0, call->workspace_bytes);
  return good(call);
}

ENTRY writes_past_workspace(const kg_call* call) {
  good(call);
  static_cast<char*>(call->workspace)[call->workspace_bytes] = 1;
  return 0;
}
