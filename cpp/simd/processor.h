// The builds of the inner loops that this processor can run. The module checks them when it is loaded, and CMake when
// it compiles for this machine only (cpp/simd/print_levels.cpp).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tallybayes {

struct Processor {
  bool baseline = true;  // the default target of the compiler
  bool v3 = false, v4 = false;
  bool counts_bits = false;  // AVX512_VPOPCNTDQ, which is not part of x86-64-v4
};

inline Processor this_processor() {
  Processor found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The builtin also checks what the system saves between threads; older compilers lack these three features.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool halves = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && (c & bit_MOVBE);
  const bool zeros = __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
  found.v3 = halves && zeros && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") &&
             __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
             __builtin_cpu_supports("bmi2");
  found.v4 = found.v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
  found.counts_bits = __builtin_cpu_supports("avx512vpopcntdq");
  // Some compilers target more than x86-64 by default.
#if defined(__AVX512F__)
  found.baseline = found.v4;
#elif defined(__AVX2__)
  found.baseline = found.v3;
#elif defined(__SSE4_2__)
  found.baseline = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#endif
#endif
  return found;
}

}  // namespace tallybayes
