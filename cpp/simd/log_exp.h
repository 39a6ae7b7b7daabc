// Logarithms and exponentials of vectors, with errors of about one unit in the last place.
#pragma once

#include "simd/vectors.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

typedef uint64_t Words __attribute__((vector_size(8 * lanes)));  // sums may wrap around

// ln 2 in two parts; the product of the first part and an exponent is exact.
constexpr double log_two_high = 6.93147180369123816490e-01;
constexpr double log_two_low = 1.90821492927058770002e-10;

// log(1 + f) = f − (f²/2 − s·(f²/2 + R)) with s = f/(2 + f), R a polynomial in s² (Sun's FDLIBM), for √½ ≤ 1 + f ≤ √2.
static inline Doubles log_near_one(Doubles f) {
  const Doubles half_square = f * f * 0.5;
  const Doubles s = f / (f + 2.0);
  const Doubles z = s * s;
  Doubles r = repeat(1.479819860511658591e-01);
  r = multiply_add(r, z, repeat(1.531383769920937332e-01));
  r = multiply_add(r, z, repeat(1.818357216161805012e-01));
  r = multiply_add(r, z, repeat(2.222219843214978396e-01));
  r = multiply_add(r, z, repeat(2.857142874366239149e-01));
  r = multiply_add(r, z, repeat(3.999999999940941908e-01));
  r = multiply_add(r, z, repeat(6.666666666666735130e-01));
  r = r * z;
  return f - (half_square - s * (half_square + r));
}

static inline Doubles exponent_of(Mask bits) {
  // The bits of the exponent as the low bits of 2⁵² are the number 2⁵² + exponent.
  return (Doubles)((bits >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1023.0);
}
static inline Doubles mantissa_of(Mask bits) {
  return (Doubles)((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
}

// Moves the power of two of 1 + q to `exponent`; leaves q in [0, 2).
static inline void move_exponent(Doubles& q, Doubles& exponent) {
  const Doubles product = q + 1.0;
  const Mask bits = (Mask)product;
  exponent += exponent_of(bits) + (product - product);  // the latter is 0 or NaN
  q = choose(product < 2.0, q, mantissa_of(bits) - 1.0);
}

// log(2ᵉ · (1 + q)) for q in [0, 2); NaN if `exponent` is NaN.
static inline Doubles log_product(Doubles q, Doubles exponent) {
  const Mask halve = q > 0.4142135623730950488;
  const Doubles f = choose(halve, (q - 1.0) * 0.5, q);
  exponent += keep(repeat(1.0), halve);
  return exponent * log_two_high + (log_near_one(f) + exponent * log_two_low);
}

// log(1 − t) for t in [0, 1).
static inline Doubles log_of_rest(Doubles t) {
  const Mask far = t > 0.2928932188134524756;  // 1 − √½; 1 − t is exact from ½ on
  const Doubles rest = 1.0 - t;
  const Mask bits = (Mask)rest;
  const Mask wide = mantissa_of(bits) > 1.4142135623730950488;
  const Doubles exponent = keep(exponent_of(bits) + keep(repeat(1.0), wide), far);
  const Doubles mantissa = mantissa_of(bits) * choose(wide, repeat(0.5), repeat(1.0));
  const Doubles f = choose(far, mantissa - 1.0, -t);
  return exponent * log_two_high + (log_near_one(f) + exponent * log_two_low);
}

// eˣ for x ≤ 0; 0 below −708, where it would be subnormal; NaN for NaN.
static inline Doubles exp_of_negative(Doubles x) {
  constexpr double shifter = 6755399441055744.0;  // 1.5 · 2⁵²: integers added to it are its last bits
  const Doubles shifted = multiply_add(x, repeat(1.44269504088896338700), repeat(shifter));
  const Doubles n = shifted - shifter;
  const Doubles r = (x - n * log_two_high) - n * log_two_low;  // within ±½ ln 2
  // Taylor series with a truncation error of 4e-18
  Doubles p = repeat(1.0 / 6227020800.0);
  p = multiply_add(p, r, repeat(1.0 / 479001600.0));
  p = multiply_add(p, r, repeat(1.0 / 39916800.0));
  p = multiply_add(p, r, repeat(1.0 / 3628800.0));
  p = multiply_add(p, r, repeat(1.0 / 362880.0));
  p = multiply_add(p, r, repeat(1.0 / 40320.0));
  p = multiply_add(p, r, repeat(1.0 / 5040.0));
  p = multiply_add(p, r, repeat(1.0 / 720.0));
  p = multiply_add(p, r, repeat(1.0 / 120.0));
  p = multiply_add(p, r, repeat(1.0 / 24.0));
  p = multiply_add(p, r, repeat(1.0 / 6.0));
  p = multiply_add(p, r, repeat(0.5));
  p = multiply_add(p * r, r, r) + 1.0;
  const Doubles scale = (Doubles)(((Words)shifted << 52) + 0x3ff0000000000000);
  return keep(p * scale, ~(x < -708.0));
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
