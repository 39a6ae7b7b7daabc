// Vectors of the width that the instruction set supports (wider ones would be spilled to memory), and error-free
// transformations on them. The files of this folder are compiled with -ffp-contract=off: a sum of products must be
// rounded exactly as written.
//
// Everything here is in the tier's own namespace and uses no templates of the standard library: the linker keeps one
// copy of those for all tiers, which might contain instructions that this processor lacks.
#pragma once

#include "simd/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef TALLYBAYES_TIER
#define TALLYBAYES_TIER baseline
#endif

namespace tallybayes {
namespace TALLYBAYES_TIER {

#if defined(__AVX512F__)
constexpr size_t lanes = 8;
#elif defined(__AVX2__)
constexpr size_t lanes = 4;
#else
constexpr size_t lanes = 2;
#endif
constexpr size_t byte_lanes = 8 * lanes;
// Sums along a row use eight partial sums, for any vector width, so that the rounding is the same in every tier.
constexpr size_t vectors_of_eight = 8 / lanes;

typedef double Doubles __attribute__((vector_size(8 * lanes)));
typedef int64_t Mask __attribute__((vector_size(8 * lanes)));
typedef uint8_t ByteVector __attribute__((vector_size(byte_lanes)));
typedef double UnalignedDoubles __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
typedef uint8_t UnalignedBytes __attribute__((vector_size(byte_lanes), aligned(1), may_alias));

template <class T>
static inline T smaller(T a, T b) { return a < b ? a : b; }
template <class T>
static inline T larger(T a, T b) { return a > b ? a : b; }

static inline Doubles load(const double* p) { return *reinterpret_cast<const UnalignedDoubles*>(p); }
static inline void store(double* p, Doubles v) { *reinterpret_cast<UnalignedDoubles*>(p) = v; }
static inline Doubles repeat(double x) { return x - Doubles{}; }
static inline Doubles keep(Doubles v, Mask where) { return (Doubles)((Mask)v & where); }
static inline Doubles choose(Mask where, Doubles yes, Doubles no) {
  return (Doubles)(((Mask)yes & where) | ((Mask)no & ~where));
}

// The same mask, opaque to the compiler: GCC 12 crashes on some if 64-bit lanes cannot be compared, as x86-64 before
// SSE4.1.
static inline Mask opaque(Mask mask) {
#if defined(__x86_64__) && !defined(__SSE4_1__) && !defined(__clang__)
  __asm__("" : "+x"(mask));
#endif
  return mask;
}

// One vector from the lanes of two, `from` indexing both: GCC before 12 has only the one builtin, Clang only the
// other.
template <size_t... from, class Vector>
static inline __attribute__((always_inline)) Vector shuffle(Vector a, Vector b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, static_cast<int>(from)...);
#else
  return __builtin_shuffle(a, b, decltype(a == b){from...});
#endif
}
template <size_t... lane>
struct LaneList {};
#if defined(__AVX512F__)
typedef LaneList<0, 1, 2, 3, 4, 5, 6, 7> EveryLane;
#elif defined(__AVX2__)
typedef LaneList<0, 1, 2, 3> EveryLane;
#else
typedef LaneList<0, 1> EveryLane;
#endif

template <size_t distance, size_t... lane>
static inline Doubles exchange(Doubles v, LaneList<lane...>) { return shuffle<(lane ^ distance)...>(v, v); }

// The sum of eight sums in every lane.
static inline __attribute__((always_inline)) Doubles spread_sum(const Doubles* eight) {
#if defined(__AVX512F__)
  Doubles sum = eight[0] + exchange<4>(eight[0], EveryLane());
  sum += exchange<2>(sum, EveryLane());
#elif defined(__AVX2__)
  Doubles sum = eight[0] + eight[1];
  sum += exchange<2>(sum, EveryLane());
#else
  const Doubles sum = (eight[0] + eight[2]) + (eight[1] + eight[3]);
#endif
  return sum + exchange<1>(sum, EveryLane());
}

static inline bool all(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_movepi64_mask((__m512i)mask) == 0xff;
#elif defined(__AVX2__)
  return _mm256_movemask_pd((__m256d)mask) == 0xf;
#else
  return (mask[0] & mask[1]) != 0;
#endif
}

// The first n lanes.
static inline Mask first_lanes(size_t n) {
  Mask mask;
  for (size_t lane = 0; lane < lanes; lane++) mask[lane] = lane < n ? -1 : 0;
  return mask;
}
// Reads these lanes only, 0 in all others: memory beyond them may belong to another array.
static inline Doubles load_part(const double* p, Mask part) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_pd(_mm512_movepi64_mask((__m512i)part), p);
#elif defined(__AVX2__)
  return _mm256_maskload_pd(p, (__m256i)part);
#else
  return Doubles{part[0] ? p[0] : 0.0, part[1] ? p[1] : 0.0};
#endif
}
// The first n, or all if n is larger.
static inline Doubles load_first(const double* p, size_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << smaller(n, lanes)) - 1), p);
#else
  return load_part(p, first_lanes(n));
#endif
}

// a·b + c with one rounding if the hardware supports it (x86-64 from v3 on): otherwise plain sums tolerate two.
static inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__) && defined(__AVX2__)
  return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
  return (Doubles)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}
static inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// a − b by the multiplier, which is otherwise idle while the adder is the bottleneck. Rounded once, like a − b.
static inline Doubles subtract_by_multiplier(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  return _mm512_fmsub_pd(a, _mm512_set1_pd(1.0), b);
#elif defined(__FMA__) && defined(__AVX2__)
  return _mm256_fmsub_pd(a, _mm256_set1_pd(1.0), b);
#else
  return a - b;
#endif
}

struct Pair {
  Doubles high, low;
};

// Knuth: high + low is exactly a + b.
static inline Pair two_sum(Doubles a, Doubles b) {
  const Doubles high = a + b;
  const Doubles virtual_b = subtract_by_multiplier(high, a);
  const Doubles virtual_a = high - virtual_b;
  return {high, subtract_by_multiplier(a, virtual_a) + subtract_by_multiplier(b, virtual_b)};
}
// Dekker: the same in half the operations where |a| >= |b|.
static inline Pair quick_two_sum(Doubles a, Doubles b) {
  const Doubles high = a + b;
  return {high, b - (high - a)};
}
// high + low is exactly a · b.
static inline Pair two_product(Doubles a, Doubles b) {
  const Doubles high = a * b;
#if defined(__AVX512F__)
  return {high, _mm512_fmsub_pd(a, b, high)};
#elif defined(__FMA__) && defined(__AVX2__)
  return {high, _mm256_fmsub_pd(a, b, high)};
#elif defined(__aarch64__)
  return {high, multiply_add(a, b, -high)};
#else
  // Veltkamp's splitting into halves of 26 bits, whose products are exact.
  const Doubles a_wide = a * 134217729.0, b_wide = b * 134217729.0;
  const Doubles a_high = a_wide - (a_wide - a), b_high = b_wide - (b_wide - b);
  const Doubles a_low = a - a_high, b_low = b - b_high;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}
static inline Pair add(Pair a, Pair b) {
  const Pair sum = two_sum(a.high, b.high);
  return quick_two_sum(sum.high, sum.low + (a.low + b.low));
}

// Columns are processed in panels of one vector. The last panel overlaps to end with the last column; `fresh` then
// marks the lanes that no earlier panel has processed.
struct Panel {
  size_t start;
  Mask fresh;
};
static inline Panel panel_at(size_t column, size_t width) {
  Panel panel{smaller(column, width - lanes), Mask{}};
  for (size_t lane = 0; lane < lanes; lane++) panel.fresh[lane] = panel.start + lane >= column ? -1 : 0;
  return panel;
}

extern const Kernels kernels;

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
