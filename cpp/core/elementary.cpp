#include "core/elementary.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/elementary_terms.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double shifter = 6755399441055744.0;  // 1.5 · 2⁵²: adding it rounds to an integer

}  // namespace

double natural_log(double x) {
  if (!(x < infinity)) return x;
  if (x == 0.0) return -infinity;
  int exponent = -1023;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent -= 54;
  }
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  exponent += static_cast<int>(bits >> 52);
  bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
  double mantissa;
  std::memcpy(&mantissa, &bits, sizeof(mantissa));
  const bool halve = mantissa > root_two;
  return log_of_parts((halve ? mantissa * 0.5 : mantissa) - 1.0, static_cast<double>(exponent + halve));
}

double log_one_plus(double x) { return x < root_two - 1.0 ? log_of_parts(x, 0.0) : natural_log(1.0 + x); }

double exponential(double x) {
  if (!(x > -746.0)) return x <= -746.0 ? 0.0 : x;
  if (x > 710.0) return infinity;
  const double n = (x * 1.44269504088896338700 + shifter) - shifter;
  const double r = (x - n * ln_two_high) - n * ln_two_low;  // within ±½ ln 2
  // Taylor series from r² on, with a truncation error of 4e-18
  constexpr double terms[] = {1.0 / 2.0,       1.0 / 6.0,        1.0 / 24.0,        1.0 / 120.0,
                              1.0 / 720.0,     1.0 / 5040.0,     1.0 / 40320.0,     1.0 / 362880.0,
                              1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0};
  const double result = 1.0 + (r + r * r * polynomial(terms, r));
  const int exponent = static_cast<int>(n);
  if (exponent < -1021 || exponent > 1023) return std::ldexp(result, exponent);
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return result * power;
}

double log_gamma_plus_one(double x) {
  if (!(x < infinity)) return x;
  if (x >= stirling_from) return stirling(x, natural_log(x + 1.0));
  const double m = (x + shifter) - shifter, t = x - m, near = log_gamma_near_two(t);
  if (m == 0.0) return near - log_one_plus(t);
  double product = 1.0;
  for (double i = 2.0; i <= m; i++) product *= t + i;
  return natural_log(product) + near;
}

}  // namespace tallybayes
