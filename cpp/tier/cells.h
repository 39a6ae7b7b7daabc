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

static inline Doubles log_factorials(Doubles x) {
  Doubles result = {};
  for (size_t lane = 0; lane < lanes; lane++) result[lane] = log_factorial(x[lane]);
  return result;
}

static inline bool none_above_one(Doubles x) { return all(x <= 1.0); }

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
