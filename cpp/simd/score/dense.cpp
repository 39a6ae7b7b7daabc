// Sums over the columns of transposed cells, a few classes at a time in registers.
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t strip = 2;  // vectors of rows at once: each parameter is read once for both

// sum[class][row] = term(sum, cell, parameters of the column, class), column after column.
template <size_t n_classes, size_t n_vectors, size_t n_parameters, class Term>
inline void add_strip(const DenseWork& work, const double* parameters, double* sums, size_t row, Term term) {
  Doubles sum[n_classes][n_vectors];
#pragma GCC unroll 8
  for (size_t k = 0; k < n_classes; k++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) sum[k][v] = load(sums + k * work.pitch + row + v * lanes);
  }
  for (size_t j = 0; j < work.n_columns; j++, parameters += n_parameters * n_classes) {
    prefetch_share(work.ahead, row, n_vectors * lanes, j);
    Doubles x[n_vectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) x[v] = load(work.cells + j * work.pitch + row + v * lanes);
#pragma GCC unroll 8
    for (size_t k = 0; k < n_classes; k++) {
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) sum[k][v] = term(sum[k][v], x[v], parameters, k);
    }
  }
#pragma GCC unroll 8
  for (size_t k = 0; k < n_classes; k++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) store(sums + k * work.pitch + row + v * lanes, sum[k][v]);
  }
}

template <size_t n_classes, size_t n_parameters, class Term>
inline void add_terms(const DenseWork& work, const double* parameters, double* sums, Term term) {
  size_t row = 0;
  for (; row + lanes < work.n_rows; row += strip * lanes) {
    add_strip<n_classes, strip, n_parameters>(work, parameters, sums, row, term);
  }
  if (row < work.n_rows) add_strip<n_classes, 1, n_parameters>(work, parameters, sums, row, term);
}

}  // namespace

void add_norms(const DenseWork& work) {
  with_group(work.n_classes, [&](auto count) {
    add_terms<decltype(count)::value, 1>(work, work.norms, work.norm,
                                         [](Doubles sum, Doubles x, const double* norm, size_t k) {
                                           return sum + keep(repeat(norm[k]), x == x);
                                         });
  });
}

void add_linear(const DenseWork& work) {
  with_group(work.n_classes, [&](auto count) {
    constexpr size_t n = decltype(count)::value;
    if (work.missing) {
      add_terms<n, 1>(work, work.parameters, work.sum, [](Doubles sum, Doubles x, const double* weight, size_t k) {
        return multiply_add(keep(x, x == x), repeat(weight[k]), sum);
      });
    } else {
      add_terms<n, 1>(work, work.parameters, work.sum, [](Doubles sum, Doubles x, const double* weight, size_t k) {
        return multiply_add(x, repeat(weight[k]), sum);
      });
    }
  });
}

// Parameters: the mean, and the square root of half the precision. Centered before squaring: the expanded form x² −
// 2·x·mean + mean² would cancel far from 0.
void add_normal(const DenseWork& work) {
  with_group(work.n_classes, [&](auto count) {
    constexpr size_t n = decltype(count)::value;
    if (work.missing) {
      add_terms<n, 2>(work, work.parameters, work.sum, [](Doubles sum, Doubles x, const double* p, size_t k) {
        const Doubles z = keep((x - repeat(p[k])) * repeat(p[n + k]), x == x);
        return multiply_add(-z, z, sum);
      });
    } else {
      add_terms<n, 2>(work, work.parameters, work.sum, [](Doubles sum, Doubles x, const double* p, size_t k) {
        const Doubles z = (x - repeat(p[k])) * repeat(p[n + k]);
        return multiply_add(-z, z, sum);
      });
    }
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
