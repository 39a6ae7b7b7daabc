// Sums over rows that belong to every group with a weight of their own. A block of rows is first written out as cells:
// whatever is to be summed (a value, its square, a one for the weight itself) side by side. All sums are then one
// product of matrices, weightsᵀ · cells, in plain float64. What does not depend on the group is thus done once.
#include "cells.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// As many sums as there are registers for, with some left for cells and a weight.
constexpr size_t tile_vectors = lanes == 8 ? 3 : 2;
constexpr size_t tile_groups = lanes == 8 ? 8 : lanes == 4 ? 6 : 4;

template <size_t groups, size_t vectors>
inline void sum_tile(const SoftRows& rows, const double* weights, const double* cells, double* sums) {
  Doubles sum[groups][vectors];
  for (size_t g = 0; g < groups; g++) {
    for (size_t k = 0; k < vectors; k++) sum[g][k] = load(sums + g * rows.pitch + k * lanes);
  }
  for (size_t i = 0; i < rows.n_rows; i++, weights += rows.weight_pitch, cells += rows.pitch) {
    Doubles cell[vectors];
    for (size_t k = 0; k < vectors; k++) cell[k] = load(cells + k * lanes);
    for (size_t g = 0; g < groups; g++) {
      const Doubles weight = repeat(weights[g]);
      for (size_t k = 0; k < vectors; k++) sum[g][k] = multiply_add(weight, cell[k], sum[g][k]);
    }
  }
  for (size_t g = 0; g < groups; g++) {
    for (size_t k = 0; k < vectors; k++) store(sums + g * rows.pitch + k * lanes, sum[g][k]);
  }
}

template <size_t groups>
void sum_groups(const SoftRows& rows, size_t first, size_t n_vectors, double* sums) {
  const double* weights = rows.weights + first;
  sums += first * rows.pitch;
  size_t k = 0;
  for (; k + tile_vectors <= n_vectors; k += tile_vectors) {
    sum_tile<groups, tile_vectors>(rows, weights, rows.cells + k * lanes, sums + k * lanes);
  }
  if (tile_vectors == 3 && n_vectors - k == 2) {
    sum_tile<groups, 2>(rows, weights, rows.cells + k * lanes, sums + k * lanes);
  } else if (k < n_vectors) {
    sum_tile<groups, 1>(rows, weights, rows.cells + k * lanes, sums + k * lanes);
  }
}

using SumGroups = void (*)(const SoftRows&, size_t, size_t, double*);
constexpr SumGroups sum_some[] = {sum_groups<1>, sum_groups<2>, sum_groups<3>, sum_groups<4>,
                                  sum_groups<5>, sum_groups<6>, sum_groups<7>, sum_groups<8>};

inline bool weighs(const double* weights, size_t n_groups) {
  for (size_t g = 0; g < n_groups; g++) {
    if (weights[g] != 0.0) return true;
  }
  return false;
}

// The columns of a row in panels of one vector, the last one moved back; fewer columns than lanes are one short panel.
template <class F>
inline void each_panel(size_t n_columns, F f) {
  if (n_columns < lanes) return f(size_t{0});
  for (size_t column = 0; column < n_columns; column += lanes) f(smaller(column, n_columns - lanes));
}
inline void store_panel(double* to, Doubles v, size_t n_columns) {
  if (n_columns >= lanes) return store(to, v);
  for (size_t lane = 0; lane < n_columns; lane++) to[lane] = v[lane];
}
inline Mask first_lanes(size_t n) {
  Mask mask{};
  for (size_t lane = 0; lane < lanes; lane++) mask[lane] = lane < n ? -1 : 0;
  return mask;
}

inline const double* row_at(const SoftSource& from, size_t i) {
  return reinterpret_cast<const double*>(from.base + static_cast<ptrdiff_t>(i) * from.row_stride);
}
inline void prefetch_next(const SoftSource& from, const double* row) {
  for (size_t at = 0; at < from.n_columns * sizeof(double); at += 64) {
    __builtin_prefetch(reinterpret_cast<Bytes>(row) + at + from.lookahead, 0, 2);
  }
}

}  // namespace

void sum_soft(const SoftRows& rows, size_t n_groups, size_t width, double* sums) {
  const size_t n_vectors = (width + lanes - 1) / lanes, n_tiles = (n_groups + tile_groups - 1) / tile_groups;
  for (size_t tile = 0; tile < n_tiles; tile++) {
    const size_t first = tile * n_groups / n_tiles, n = (tile + 1) * n_groups / n_tiles - first;
    sum_some[n - 1](rows, first, n_vectors, sums);
  }
}

void sample_centre(const SoftSource& from, const double* anchor, double* centre) {
  constexpr size_t wanted = 16;  // enough for a centre within a fraction of the spread
  const double* sample[wanted];
  size_t n = 0;
  auto take = [&](size_t i) {
    if (n < wanted && weighs(from.weights + i * from.weight_pitch, from.n_groups)) sample[n++] = row_at(from, i);
  };
  const size_t tried = smaller(wanted, from.n_rows);
  for (size_t k = 0; k < tried; k++) take(k * from.n_rows / tried);  // evenly spread, in case the rows are sorted
  for (size_t i = 0; n == 0 && i < from.n_rows; i++) take(i);
  each_panel(from.n_columns, [&](size_t start) {
    Doubles low = repeat(2e150), high = repeat(-2e150), sum = {}, count = {};
    for (size_t k = 0; k < n; k++) {
      const Doubles x = load(sample[k] + start);
      const Mask ordinary = (x <= 1e150) & (x >= -1e150);
      low = choose(ordinary & (x < low), x, low);
      high = choose(ordinary & (x > high), x, high);
      sum += keep(x, ordinary);
      count += keep(repeat(1.0), ordinary);
    }
    // Rounded to a power of two somewhat below the spread: x − centre is small, and exact whenever it can be.
    const Doubles mean = sum / count, spread = high - low;
    const Doubles step = 0.25 * keep(spread, repeat_bits(0x7ff0000000000000));
    const Doubles steps = mean / step, rounded = ((steps + 6755399441055744.0) - 6755399441055744.0) * step;
    const Mask fine = (steps <= 1e15) & (steps >= -1e15) & (spread > 0.0);
    Doubles result = choose(fine, rounded, choose(spread == 0.0, low, mean));
    const Doubles origin = n_columns_load(anchor + start, from.n_columns);
    store_panel(centre + start, choose(count > 0.0, result, origin), from.n_columns);
  });
}
