// Sums of outer products: centered rows are packed into panels, multiplied tile by tile in registers, and the finished
// block is added to the double-double sums.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

void pack_rows(const RowSet& set, size_t n_columns, const double* center, size_t capacity, double* packed,
               double* packed_weighted, double* sum) {
  constexpr size_t tile = scatter_tile, rows_ahead = 6;
  const size_t whole = n_columns / tile * tile;
  auto row_at = [&](size_t i) { return set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride; };
  for (size_t i = 0; i < set.n_rows; i++) {
    // The rows of a group are scattered over the block, which the hardware prefetcher does not predict.
    if (i + rows_ahead < set.n_rows) {
      Bytes ahead = row_at(i + rows_ahead);
      for (size_t at = 0; at < n_columns * sizeof(double); at += 64) __builtin_prefetch(ahead + at);
    }
    const auto* row = reinterpret_cast<const double*>(row_at(i));
    const double weight = packed_weighted ? set.weights[i] : 1.0;
    for (size_t column = 0; column < whole; column += lanes) {
      const size_t place = column / tile * tile * capacity + i * tile + column % tile;
      const Doubles y = load(row + column) - load(center + column);
      store(packed + place, y);
      const Doubles weighted = packed_weighted ? weight * y : y;
      if (packed_weighted) store(packed_weighted + place, weighted);
      store(sum + column, load(sum + column) + weighted);
    }
    for (size_t column = whole; column < (n_columns + tile - 1) / tile * tile; column++) {
      const size_t place = whole * capacity + i * tile + column - whole;
      const double y = column < n_columns ? row[column] - center[column] : 0.0;
      packed[place] = y;
      if (packed_weighted) packed_weighted[place] = weight * y;
      if (column < n_columns) sum[column] += weight * y;
    }
  }
}

namespace {

// product[i + q][j..] += Σ_r left[r][q] · right[r][..] for `height` rows of the product and `panels` panels of eight
// columns. The sums stay in registers during the loop over rows.
template <size_t height, size_t panels>
inline void multiply_tile(const double* left, const double* const* right, size_t n_rows, double* product,
                          size_t pitch) {
  constexpr size_t tile = scatter_tile, per_panel = tile / lanes, vectors = panels * per_panel;
  Doubles sums[height][vectors];
  for (size_t q = 0; q < height; q++) {
    for (size_t k = 0; k < vectors; k++) sums[q][k] = load(product + q * pitch + k * lanes);
  }
  for (size_t r = 0; r < n_rows; r++) {
    Doubles b[vectors];
    for (size_t k = 0; k < vectors; k++) b[k] = load(right[k / per_panel] + r * tile + (k % per_panel) * lanes);
    for (size_t q = 0; q < height; q++) {
      const Doubles a = repeat(left[r * tile + q]);
      for (size_t k = 0; k < vectors; k++) sums[q][k] = multiply_add(a, b[k], sums[q][k]);
    }
  }
  for (size_t q = 0; q < height; q++) {
    for (size_t k = 0; k < vectors; k++) store(product + q * pitch + k * lanes, sums[q][k]);
  }
}

// As many sums as registers permit: 8 × 16 with 32 wide ones, less with 16.
constexpr size_t tile_height = lanes == 8 ? 8 : lanes == 4 ? 4 : 2;

template <size_t panels>
inline void multiply_block(const double* left, const double* const* right, size_t n_rows, double* product,
                           size_t pitch) {
  for (size_t q = 0; q < scatter_tile; q += tile_height) {
    multiply_tile<tile_height, panels>(left + q, right, n_rows, product + q * pitch, pitch);
  }
}

}  // namespace

void multiply_panels(const double* left, const double* right, size_t n_rows, size_t capacity, size_t pitch,
                     double* product) {
  constexpr size_t tile = scatter_tile;
  const size_t n_tiles = pitch / tile;
  for (size_t j = 0; j < n_tiles; j += 2) {
    const double* panels[2] = {right + j * tile * capacity, right + (j + 1) * tile * capacity};
    const bool two = lanes == 8 && j + 1 < n_tiles;
    for (size_t i = 0; i <= j; i++) {
      double* target = product + i * tile * pitch + j * tile;
      const double* from = left + i * tile * capacity;
      if (two) {
        multiply_block<lanes == 8 ? 2 : 1>(from, panels, n_rows, target, pitch);
        continue;
      }
      multiply_block<1>(from, panels, n_rows, target, pitch);
      if (j + 1 < n_tiles) multiply_block<1>(from, panels + 1, n_rows, target + tile, pitch);
    }
    if (j + 1 < n_tiles) {
      multiply_block<1>(left + (j + 1) * tile * capacity, panels + 1, n_rows,
                        product + (j + 1) * tile * (pitch + 1), pitch);
    }
  }
}

void add_scatter(const ScatterBlock& block, double* second_high, double* second_low) {
  const size_t d = block.n_columns;
  auto add_element = [&](size_t i, size_t j, auto read, auto write) {
    // S + δ·sᵀ + (s + W·δ)·δᵀ, every product with its error.
    const Doubles shift = repeat(block.shift_high[i]), shift_low = repeat(block.shift_low[i]);
    const Doubles first = repeat(block.first_high[i]), first_low = repeat(block.first_low[i]);
    const Doubles sum = read(block.sum + j);
    const Doubles other = read(block.shift_high + j), other_low = read(block.shift_low + j);
    Pair left = two_product(shift, sum);
    left.low += shift_low * sum;
    Pair right = two_product(first, other);
    right.low += first * other_low + first_low * other;
    Pair total = {read(second_high + i * d + j), read(second_low + i * d + j)};
    total = add(total, Pair{read(block.product + i * block.pitch + j), Doubles{}});
    total = add(add(total, left), right);
    write(second_high + i * d + j, total.high);
    write(second_low + i * d + j, total.low);
  };
  for (size_t i = 0; i < d; i++) {
    size_t j = i;
    for (; j + lanes <= d; j += lanes) {
      add_element(i, j, [](const double* p) { return load(p); }, [](double* p, Doubles v) { store(p, v); });
    }
    for (; j < d; j++) {
      add_element(i, j, [](const double* p) { return repeat(*p); }, [](double* p, Doubles v) { *p = v[0]; });
    }
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
