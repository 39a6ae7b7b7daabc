// Student t: Σ power · log(1 + t) with t = ((x − mean) · root)².
//
// If a class has the same power for all columns, one logarithm is computed, of the product of the (1 + t). The product
// is stored as 1 + q, so that many t far below the last bit of 1 are added without loss: (1 + q)(1 + t) = 1 + (q +
// (q·t + t)). From time to time its power of two is moved to a counter, which becomes and stays NaN if the product
// went out of range in between; such rows are repeated with one logarithm per column.
#include "simd/log_exp.h"
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t strip = 2;
constexpr size_t columns_between = 16;  // until the power of two is moved: 2⁶³ per column on average

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

// For one class only. Parameters: mean, root and power.
void add_left_out(const DenseWork& work) {
  for (size_t row = 0; row < work.n_rows; row += lanes) {
    Doubles sum = load(work.sum + row);
    for (size_t j = 0; j < work.n_columns; j++) {
      const double* p = work.parameters + 3 * j;
      const Doubles t = square_distance<true>(load(work.cells + j * work.pitch + row), p[0], p[1]);
      const Doubles term = log_of_rest(t) * p[2];
      sum += choose(1.0 - t >= least_left, term, repeat(__builtin_nan("")));
    }
    store(work.sum + row, sum);
  }
}

void log_products(double* sum, const double* exponent, size_t n) {
  for (size_t i = 0; i < n; i += lanes) store(sum + i, log_product(load(sum + i), load(exponent + i)));
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
