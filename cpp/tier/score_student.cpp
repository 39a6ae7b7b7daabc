// Student t: Σ power · log(1 + t) with t = ((x − mean) · root)².
//
// Where a class has one power for all columns the logarithm is taken once, of the product of the (1 + t). The product
// is held as 1 + q, so that many t far below the last bit of 1 add up without loss:
// (1 + q)(1 + t) = 1 + (q + (q·t + t)). Now and then its power of two is moved to a counter, which turns NaN, and stays
// it, if the product went out of range in between; such rows are done again with one logarithm for each column.
#include "score.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t strip = 2;
constexpr size_t columns_between = 16;  // until the power of two is moved: 2⁶³ for each column on average

// log(1 + f) = f − (f²/2 − s·(f²/2 + R)) with s = f/(2 + f), R a polynomial in s² (Sun's FDLIBM), for √½ ≤ 1 + f ≤ √2.
inline Doubles log_near_one(Doubles f) {
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

// Moves the power of two of 1 + q, if there is one, to `exponent`; leaves q in [0, 2).
inline void move_exponent(Doubles& q, Doubles& exponent) {
  const Doubles product = q + 1.0;
  const Mask bits = (Mask)product;
  // The exponent's bits under those of 2⁵² are the number 2⁵² + exponent. `product - product` is 0 or NaN.
  const Doubles biased = (Doubles)((bits >> 52) | 0x4330000000000000) - 4503599627370496.0;
  exponent += (biased - 1023.0) + (product - product);
  const Doubles mantissa = (Doubles)((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  q = choose(product < 2.0, q, mantissa - 1.0);
}

// log(2ᵉ · (1 + q)) for q in [0, 2); NaN where `exponent` is.
inline Doubles log_product(Doubles q, Doubles exponent) {
  const Mask halve = q > 0.4142135623730950488;
  const Doubles f = choose(halve, (q - 1.0) * 0.5, q);
  exponent += keep(repeat(1.0), halve);
  return exponent * 6.93147180369123816490e-01 + (log_near_one(f) + exponent * 1.90821492927058770002e-10);
}

template <bool missing>
inline Doubles square_distance(Doubles x, double mean, double root) {
  Doubles z = (x - repeat(mean)) * repeat(root);
  if (missing) z = keep(z, x == x);
  return z * z;
}

template <size_t n, size_t n_vectors, bool missing>
inline void multiply_strip(const DenseWork& work, size_t row) {
  Doubles q[n][n_vectors];
#pragma GCC unroll 8
  for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) q[k][v] = load(work.sum + k * work.pitch + row + v * lanes);
  }
  const double* p = work.parameters;
  for (size_t j = 0; j < work.n_columns;) {
    const size_t end = smaller(j + columns_between, work.n_columns);
    for (; j < end; j++, p += 2 * n) {
      prefetch_share(work.ahead, row, n_vectors * lanes, j);
      Doubles x[n_vectors];
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) x[v] = load(work.cells + j * work.pitch + row + v * lanes);
#pragma GCC unroll 8
      for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < n_vectors; v++) {
          const Doubles t = square_distance<missing>(x[v], p[k], p[n + k]);
          q[k][v] += multiply_add(q[k][v], t, t);
        }
      }
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) {
        double* at = work.exponent + k * work.pitch + row + v * lanes;
        Doubles exponent = load(at);
        move_exponent(q[k][v], exponent);
        store(at, exponent);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) store(work.sum + k * work.pitch + row + v * lanes, q[k][v]);
  }
}

template <size_t n, bool missing>
inline void multiply_rows(const DenseWork& work) {
  size_t row = 0;
  for (; row + lanes < work.n_rows; row += strip * lanes) multiply_strip<n, strip, missing>(work, row);
  if (row < work.n_rows) multiply_strip<n, 1, missing>(work, row);
}

}  // namespace

void add_student(const DenseWork& work) {
  with_group(work.n_classes, [&](auto count) {
    if (work.missing) {
      multiply_rows<decltype(count)::value, true>(work);
    } else {
      multiply_rows<decltype(count)::value, false>(work);
    }
  });
}

// Parameters: mean, root and power.
void add_student_by_column(const DenseWork& work) {
  const size_t n = work.n_classes;
  for (size_t k = 0; k < n; k++) {
    for (size_t row = 0; row < work.n_rows; row += lanes) {
      double* at = work.sum + k * work.pitch + row;
      Doubles sum = load(at);
      for (size_t j = 0; j < work.n_columns; j++) {
        const double* p = work.parameters + 3 * n * j;
        Doubles q = square_distance<true>(load(work.cells + j * work.pitch + row), p[k], p[n + k]);
        Doubles exponent = {};
        move_exponent(q, exponent);
        sum += log_product(q, exponent) * p[2 * n + k];
      }
      store(at, sum);
    }
  }
}

void log_products(double* sum, const double* exponent, size_t n) {
  for (size_t i = 0; i < n; i += lanes) store(sum + i, log_product(load(sum + i), load(exponent + i)));
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
