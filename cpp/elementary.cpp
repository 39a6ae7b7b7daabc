#include "elementary.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// ln 2 in two parts, the first with so few bits that its product with an exponent is exact.
constexpr double log_two_high = 6.93147180369123816490e-01;
constexpr double log_two_low = 1.90821492927058770002e-10;

// log(2ᵉ·(1 + f)) for √½ ≤ 1 + f ≤ √2; see tier/logarithms.h.
double log_near_one(double f, double exponent) {
  const double half_square = f * f * 0.5, s = f / (f + 2.0), z = s * s;
  double r = 1.479819860511658591e-01;
  r = r * z + 1.531383769920937332e-01;
  r = r * z + 1.818357216161805012e-01;
  r = r * z + 2.222219843214978396e-01;
  r = r * z + 2.857142874366239149e-01;
  r = r * z + 3.999999999940941908e-01;
  r = r * z + 6.666666666666735130e-01;
  const double near = f - (half_square - s * (half_square + r * z));
  return exponent * log_two_high + (near + exponent * log_two_low);
}

template <size_t n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = 0.0;
  for (size_t k = n; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

}  // namespace

double natural_log(double x) {
  if (!(x < infinity)) return x;
  if (x == 0.0) return -infinity;
  int exponent;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752440) {
    mantissa *= 2.0;
    exponent--;
  }
  return log_near_one(mantissa - 1.0, static_cast<double>(exponent));
}

double log_one_plus(double x) { return x < 0.41421356237309504880 ? log_near_one(x, 0.0) : natural_log(1.0 + x); }

double exponential(double x) {
  if (!(x > -746.0)) return x <= -746.0 ? 0.0 : x;
  if (x > 710.0) return infinity;
  constexpr double shifter = 6755399441055744.0;  // 1.5 · 2⁵²: what is added to it is rounded to a whole number
  const double n = (x * 1.44269504088896338700 + shifter) - shifter;
  const double r = (x - n * log_two_high) - n * log_two_low;  // within ±½ ln 2
  // Taylor's series from r² on, whose first term left out is 4e-18
  constexpr double terms[] = {0.5,
                              1.0 / 6.0,
                              1.0 / 24.0,
                              1.0 / 120.0,
                              1.0 / 720.0,
                              1.0 / 5040.0,
                              1.0 / 40320.0,
                              1.0 / 362880.0,
                              1.0 / 3628800.0,
                              1.0 / 39916800.0,
                              1.0 / 479001600.0,
                              1.0 / 6227020800.0};
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
  if (x >= 12.0) {
    // Stirling's series; the first term left out is 2e-18
    constexpr double terms[] = {1.0 / 12.0,   -1.0 / 360.0,      1.0 / 1260.0, -1.0 / 1680.0,
                                1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0};
    const double z = x + 1.0, rest = polynomial(terms, 1.0 / (z * z)) / z;
    return (z - 0.5) * (natural_log(z) - 1.0) + (0.41893853320467274178 + rest);  // ½ log 2π − ½
  }
  // Γ(1 + x) = Γ(2 + t)·Π (t + i) with i from 2 to m, m the whole number next to x. And log Γ(2 + t) is
  // (1 − γ)·t + Σ (−1)ᵏ·(ζ(k) − 1)/k·tᵏ, which keeps its digits near its zero.
  constexpr double terms[] = {
      0.42278433509846713939,  0.32246703342411321824,   -0.067352301053198095133, 0.020580808427784547879,
      -0.0073855510286739852663, 0.0028905103307415232858, -0.0011927539117032609771, 0.00050966952474304242234,
      -0.00022315475845357937976, 0.000099457512781808533715, -0.0000449262367381331417, 0.000020507212775670691553,
      -9.439488275268395904e-6, 4.3748667899074878042e-6, -2.0392157538013662368e-6, 9.5514121304074198329e-7,
      -4.4924691987645660433e-7, 2.1207184805554665869e-7, -1.0043224823968099609e-7, 4.7698101693639805658e-8,
      -2.271109460894316491e-8, 1.0838659214896954091e-8, -5.1834750419700466551e-9, 2.4836745438024783172e-9,
      -1.1921401405860912074e-9, 5.7313672416788620133e-10};
  const int m = static_cast<int>(x + 0.5);
  const double t = x - static_cast<double>(m);
  const double near = t * polynomial(terms, t);
  if (m == 0) return near - log_one_plus(t);
  double product = 1.0;
  for (int i = 2; i <= m; i++) product *= t + static_cast<double>(i);
  return natural_log(product) + near;
}

}  // namespace tallybayes
