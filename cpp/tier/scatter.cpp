// Sums of outer products: centred rows are packed into panels, multiplied tile by tile in registers, and the finished
// block is added to the double-double sums.
#include "functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

void pack_rows(const RowSet& set, size_t n_columns, const double* centre, size_t capacity, double* packed,
               double* packed_weighted, double* sum) {
  constexpr size_t tile = scatter_tile, vectors = tile / lanes;
  for (size_t column = 0; column < n_columns; column += tile) {
    const size_t in_tile = smaller(tile, n_columns - column);
    double* target = packed + column * capacity;
    double* weighted = packed_weighted ? packed_weighted + column * capacity : nullptr;
    if (in_tile == tile) {
      Doubles origin[vectors], sums[vectors];
      for (size_t k = 0; k < vectors; k++) {
        origin[k] = load(centre + column + k * lanes);
        sums[k] = load(sum + column + k * lanes);
      }
      for (size_t i = 0; i < set.n_rows; i++) {
        Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + column * sizeof(double);
        for (size_t k = 0; k < vectors; k++) {
          const Doubles y = load(reinterpret_cast<const double*>(row) + k * lanes) - origin[k];
          store(target + i * tile + k * lanes, y);
          const Doubles wy = weighted ? set.weights[i] * y : y;
          if (weighted) store(weighted + i * tile + k * lanes, wy);
          sums[k] += wy;
        }
      }
      for (size_t k = 0; k < vectors; k++) store(sum + column + k * lanes, sums[k]);
      continue;
    }
    for (size_t i = 0; i < set.n_rows; i++) {
      Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + column * sizeof(double);
      for (size_t lane = 0; lane < tile; lane++) {
        const double y = lane < in_tile ? reinterpret_cast<const double*>(row)[lane] - centre[column + lane] : 0.0;
        target[i * tile + lane] = y;
        const double wy = weighted ? set.weights[i] * y : y;
        if (weighted) weighted[i * tile + lane] = wy;
        if (lane < in_tile) sum[column + lane] += wy;
      }
    }
  }
}

namespace {

// product[i + q][j..] += Σ_r left[r][q] · right[r][..] for `height` rows of the product and `panels` panels of eight
// columns. The sums stay in registers while the rows stream by.
template <size_t height, size_t panels>
inline void multiply_tile(const double* left, const double* const* right, size_t n_rows, double* product, size_t pitch) {
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

// As many sums as there are registers for: 8 × 16 with 32 wide ones, less with 16.
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
