// Terms of the elementary functions, for numbers or vectors: the same operations in the same order, so the same bits.
// Each file compiles its own copy, since it may target another processor.
#pragma once

#include <cstddef>

namespace tallybayes {
namespace {

// ln 2 in two parts; the product of the first part and an exponent is exact.
constexpr double ln_two_high = 6.93147180369123816490e-01;
constexpr double ln_two_low = 1.90821492927058770002e-10;
constexpr double root_two = 1.41421356237309504880;

// Four partial sums of every fourth term, so that additions do not wait for each other.
template <size_t n, class Number>
inline __attribute__((always_inline)) Number polynomial(const double (&coefficients)[n], Number x) {
  const Number square = x * x, fourth = square * square;
  Number sum[4] = {};
#pragma GCC unroll 8
  for (size_t k = (n + 3) / 4 * 4; k > 0; k -= 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) {
      sum[j] = sum[j] * fourth;
      if (k - 4 + j < n) sum[j] = sum[j] + coefficients[k - 4 + j];
    }
  }
  return (sum[0] + sum[1] * x) + square * (sum[2] + sum[3] * x);
}

// log(2ᵉ·(1 + f)) for √½ ≤ 1 + f ≤ √2: f − (f²/2 − s·(f²/2 + R)) with s = f/(2 + f), R a polynomial in s² (Sun's
// FDLIBM).
template <class Number>
inline __attribute__((always_inline)) Number log_of_parts(Number f, Number exponent) {
  constexpr double terms[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                              2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                              1.479819860511658591e-01};
  const Number half_square = f * f * 0.5, s = f / (f + 2.0), z = s * s;
  const Number near = f - (half_square - s * (half_square + z * polynomial(terms, z)));
  return exponent * ln_two_high + (near + exponent * ln_two_low);
}

// log Γ(1 + x) for x ≥ stirling_from, given log(1 + x): Stirling's series with a truncation error of 2e-18.
constexpr double stirling_from = 12.0;
template <class Number>
inline __attribute__((always_inline)) Number stirling(Number x, Number log_of_next) {
  constexpr double terms[] = {1.0 / 12.0,   -1.0 / 360.0,      1.0 / 1260.0, -1.0 / 1680.0,
                              1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0};
  const Number z = x + 1.0, rest = polynomial(terms, 1.0 / (z * z)) / z;
  return (z - 0.5) * (log_of_next - 1.0) + (rest + 0.41893853320467274178);  // ½ log 2π − ½
}

// For smaller x, Γ(1 + x) = Γ(2 + t)·Π (t + i) with i from 2 to m, where m is the integer nearest to x and t = x − m.
// This is log Γ(2 + t) = (1 − γ)·t + Σ (−1)ᵏ·(ζ(k) − 1)/k·tᵏ, which is exact near its zero.
template <class Number>
inline __attribute__((always_inline)) Number log_gamma_near_two(Number t) {
  constexpr double terms[] = {
      0.42278433509846713939,     0.32246703342411321824,     -0.067352301053198095133,   0.020580808427784547879,
      -0.0073855510286739852663,  0.0028905103307415232858,   -0.0011927539117032609771,  0.00050966952474304242234,
      -0.00022315475845357937976, 0.000099457512781808533715, -0.0000449262367381331417,  0.000020507212775670691553,
      -9.439488275268395904e-6,   4.3748667899074878042e-6,   -2.0392157538013662368e-6,  9.5514121304074198329e-7,
      -4.4924691987645660433e-7,  2.1207184805554665869e-7,   -1.0043224823968099609e-7,  4.7698101693639805658e-8,
      -2.271109460894316491e-8,   1.0838659214896954091e-8,   -5.1834750419700466551e-9,  2.4836745438024783172e-9,
      -1.1921401405860912074e-9,  5.7313672416788620133e-10};
  return t * polynomial(terms, t);
}

}  // namespace
}  // namespace tallybayes
