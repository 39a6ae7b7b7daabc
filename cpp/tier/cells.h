// Which cells a kind of sum allows, and the logarithms of factorials it needs.
#pragma once

#include "functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

constexpr double largest_double = 1.7976931348623157e308;
constexpr double first_without_fraction = 4503599627370496.0;  // 2⁵²: from here on every double is whole

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

// Numbers that are not negative.
static inline Doubles log_factorials(Doubles x) {
#if defined(__AVX512F__)
  const __m512i whole = _mm512_cvttpd_epi64(x);
  const __mmask8 small = _mm512_cmp_pd_mask(x, _mm512_set1_pd(16.0), _CMP_LT_OQ);
  if (_mm512_mask_cmp_pd_mask(small, _mm512_cvtepi64_pd(whole), x, _CMP_EQ_OQ) == 0xff) {
    // Small counts, nearly always: a table in two registers.
    const Doubles low = load(log_factorial_table), high = load(log_factorial_table + lanes);
    return _mm512_permutex2var_pd(low, whole, high);
  }
#endif
  Doubles result = {};
  for (size_t lane = 0; lane < lanes; lane++) result[lane] = log_factorial(x[lane]);
  return result;
}

// Calls f(k, vector) for x[0 .. n) in vectors, eight numbers at a time and 0 beyond them; k says which vector of eight.
template <class F>
static inline __attribute__((always_inline)) void each_eight(const double* x, size_t n, F f) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 4
    for (size_t k = 0; k < vectors_of_eight; k++) f(k, load(x + i + k * lanes));
  }
  if (i == n) return;
  alignas(64) double rest[8] = {};
  for (size_t k = 0; i + k < n; k++) rest[k] = x[i + k];
#pragma GCC unroll 4
  for (size_t k = 0; k < vectors_of_eight; k++) {
    if (i + k * lanes < n) f(k, load(rest + k * lanes));
  }
}
static inline double total_of(const Doubles* eight) {
  double sum = 0.0;
  for (size_t k = 0; k < vectors_of_eight; k++) {
    for (size_t lane = 0; lane < lanes; lane++) sum += eight[k][lane];
  }
  return sum;
}

static inline bool none_above_one(Doubles x) { return all(x <= 1.0); }

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
