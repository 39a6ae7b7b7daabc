// The values that a kind of sum allows, and logarithms of factorials.
#pragma once

#include "core/elementary_terms.h"
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

constexpr double largest_double = 1.7976931348623157e308;
constexpr double first_without_fraction = 4503599627370496.0;  // 2⁵²: every double from here on is an integer

template <Kind kind>
static inline Mask allowed(Doubles x) {
  if (kind == Kind::binary) return x * (x - 1.0) == 0.0;
  const Mask range = (x >= 0.0) & (x <= largest_double);
  if (kind == Kind::multinomial) return range;
  return range & (((x + first_without_fraction) - first_without_fraction == x) | (x >= first_without_fraction));
}

static inline double log_factorial(double x) {
  if (x < static_cast<double>(n_log_factorials)) {
    const size_t whole = static_cast<size_t>(x);
    if (static_cast<double>(whole) == x) return log_factorial_table[whole];
  }
  return log_gamma_plus_one(x);
}

static inline Doubles log_of_normal(Doubles x) {
  const Mask bits = (Mask)x;
  const Doubles mantissa = (Doubles)((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  // The bits of the exponent as the low bits of 2⁵² are the number 2⁵² + exponent.
  const Doubles exponent = (Doubles)((bits >> 52) | 0x4330000000000000) - (first_without_fraction + 1023.0);
  const Mask halve = mantissa > root_two;
  return log_of_parts(choose(halve, mantissa * 0.5, mantissa) - 1.0, exponent + keep(repeat(1.0), halve));
}

// Same bits as log_gamma_plus_one.
static inline Doubles log_gammas_plus_one(Doubles x) {
  const Mask far = x >= stirling_from;
  const Doubles small = keep(x, ~far);
  const Doubles m = (small + first_without_fraction) - first_without_fraction, t = small - m;
  Doubles product = choose(m == 0.0, t + 1.0, repeat(1.0));
  for (double i = 2.0; i <= stirling_from; i++) product *= choose(m >= i, t + i, repeat(1.0));
  const Doubles direct = log_of_parts(t, Doubles{}), log_product = log_of_normal(product);
  const Doubles logs = choose(m == 0.0, -choose(t < root_two - 1.0, direct, log_product), log_product);
  const Doubles near = logs + log_gamma_near_two(t);
  if (all(~far)) return near;
  return choose(far, stirling(x, log_of_normal(x + 1.0)), near);
}

// Nonnegative numbers.
static inline Doubles log_factorials(Doubles x) {
#if defined(__AVX512F__)
  const __m512i whole = _mm512_cvttpd_epi64(x);
  const __mmask8 small = _mm512_cmp_pd_mask(x, _mm512_set1_pd(16.0), _CMP_LT_OQ);
  if (_mm512_mask_cmp_pd_mask(small, _mm512_cvtepi64_pd(whole), x, _CMP_EQ_OQ) == 0xff) {
    // Nearly all counts are small: a lookup table in two registers.
    const Doubles low = load(log_factorial_table), high = load(log_factorial_table + lanes);
    return _mm512_permutex2var_pd(low, whole, high);
  }
#endif
  constexpr double n = static_cast<double>(n_log_factorials);
  if (!all(((x + first_without_fraction) - first_without_fraction == x) & (x < n))) return log_gammas_plus_one(x);
  Doubles result = {};
  for (size_t lane = 0; lane < lanes; lane++) result[lane] = log_factorial_table[static_cast<size_t>(x[lane])];
  return result;
}

// Calls f(k, vector) for x[0 .. n) in vectors, eight numbers at a time, padded with 0; k is the index of the vector
// among eight.
template <class F>
static inline __attribute__((always_inline)) void each_eight(const double* x, size_t n, F f) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 4
    for (size_t k = 0; k < vectors_of_eight; k++) f(k, load(x + i + k * lanes));
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < vectors_of_eight; k++, i += lanes) {
    if (i < n) f(k, load_first(x + i, n - i));
  }
}
static inline bool none_above_one(Doubles x) { return all(x <= 1.0); }

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
