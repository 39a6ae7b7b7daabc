// Sums over rows with one weight per group. The terms of a block of rows (a value, its square, a one for the weight
// itself) are first stored as cells. All sums are then one matrix product, weightsᵀ · cells, in float64. Operations
// that do not depend on the group are thus done once.
#include "simd/cells.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// As many sums as registers permit, with some left for cells and a weight.
constexpr size_t tile_vectors = lanes == 8 ? 3 : 2;
constexpr size_t tile_groups = lanes == 8 ? 8 : lanes == 4 ? 6 : 4;

struct CellRows {
  const double* weights;
  size_t weight_pitch;
  const double* cells;
  size_t pitch, n_rows;
};

template <size_t groups, size_t vectors>
inline void sum_tile(const CellRows& rows, const double* weights, const double* cells, double* sums) {
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
void sum_groups(const CellRows& rows, size_t first, size_t n_vectors, double* sums) {
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

using SumGroups = void (*)(const CellRows&, size_t, size_t, double*);
constexpr SumGroups sum_some[] = {sum_groups<1>, sum_groups<2>, sum_groups<3>, sum_groups<4>,
                                  sum_groups<5>, sum_groups<6>, sum_groups<7>, sum_groups<8>};

inline bool weighs(const double* weights, size_t n_groups) {
  for (size_t g = 0; g < n_groups; g++) {
    if (weights[g] != 0.0) return true;
  }
  return false;
}

inline const double* row_at(const SoftRows& rows, size_t i) {
  return reinterpret_cast<const double*>(rows.base + static_cast<ptrdiff_t>(i) * rows.row_stride);
}

// The columns of a row in panels of one vector, the last one overlapping; fewer columns than lanes are one short
// panel.
template <class F>
inline void each_panel(size_t n_columns, F f) {
  if (n_columns < lanes) return f(size_t{0});
  for (size_t column = 0; column < n_columns; column += lanes) f(smaller(column, n_columns - lanes));
}
inline void store_panel(double* to, Doubles v, size_t n_columns) {
  if (n_columns >= lanes) return store(to, v);
  for (size_t lane = 0; lane < n_columns; lane++) to[lane] = v[lane];
}

template <Kind kind, bool careful>
Outcome write_cells(const SoftRows& rows, size_t n_columns, size_t n_groups, const DenseCells& to, bool& above_one) {
  Mask good = ~Mask{}, absent = {}, above = {};
  for (size_t i = 0; i < rows.n_rows; i++) {
    const double* row = row_at(rows, i);
    double* out = to.cells + i * to.pitch;
    const Mask here = careful && !weighs(rows.weights + i * rows.weight_pitch, n_groups) ? Mask{} : ~Mask{};
    each_panel(n_columns, [&](size_t start) {
      __builtin_prefetch(reinterpret_cast<Bytes>(row + start) + rows.lookahead, 0, 2);
      Doubles x = load(row + start);
      if (careful) {
        const Mask there = kind == Kind::multinomial ? here : here & (x == x);
        absent |= here & ~there;
        x = keep(x, there);
        if (kind != Kind::multinomial) store_panel(out + to.present + start, keep(repeat(1.0), there), n_columns);
      }
      good &= allowed<kind>(x);
      above |= x > 1.0;
      store_panel(out + start, x, n_columns);
    });
    out[n_columns] = careful && kind != Kind::multinomial ? 0.0 : 1.0;
    if (careful && kind != Kind::multinomial) out[to.present + n_columns] = 1.0;
  }
  above_one = !all(above == 0);
  if (!all(good)) return Outcome::bad;
  return all(absent == 0) ? Outcome::clean : Outcome::missing;
}

template <Kind kind>
SoftOutcome write_kind(const SoftRows& rows, size_t n_columns, size_t n_groups, const DenseCells& to) {
  bool above_one = false, careful = false;
  Outcome outcome = write_cells<kind, false>(rows, n_columns, n_groups, to, above_one);
  if (outcome == Outcome::bad) {
    // Some cells are missing, or invalid ones belong to rows without weight.
    careful = true;
    outcome = write_cells<kind, true>(rows, n_columns, n_groups, to, above_one);
  }
  if (outcome == Outcome::bad) return {outcome, 0};
  const size_t end = (careful ? to.present + n_columns : n_columns) + 1;
  if (kind == Kind::multinomial) {
    for (size_t i = 0; i < rows.n_rows; i++) {
      double* row = to.cells + i * to.pitch;
      multinomial_terms(reinterpret_cast<Bytes>(row), 0, 1, n_columns, row + n_columns + 1);
    }
    return {outcome, n_columns + 2};
  }
  if (kind == Kind::binary || !(above_one || careful)) return {outcome, end};
  Mask columns{};  // lanes beyond a short row are not counted
  for (size_t lane = 0; lane < lanes; lane++) columns[lane] = lane < n_columns ? -1 : 0;
  for (size_t i = 0; i < rows.n_rows; i++) {
    double* row = to.cells + i * to.pitch;
    each_panel(n_columns, [&](size_t start) {
      store_panel(row + to.logs + start, -log_factorials(keep(load(row + start), columns)), n_columns);
    });
  }
  return {outcome, larger(end, to.logs + n_columns)};
}

}  // namespace

void sum_soft(const double* weights, size_t weight_pitch, const double* cells, size_t pitch, size_t n_rows,
              size_t n_groups, size_t width, double* sums) {
  const CellRows rows{weights, weight_pitch, cells, pitch, n_rows};
  const size_t n_vectors = (width + lanes - 1) / lanes, n_tiles = (n_groups + tile_groups - 1) / tile_groups;
  for (size_t tile = 0; tile < n_tiles; tile++) {
    const size_t first = tile * n_groups / n_tiles, n = (tile + 1) * n_groups / n_tiles - first;
    sum_some[n - 1](rows, first, n_vectors, sums);
  }
}

SoftOutcome write_dense_cells(const SoftRows& rows, Kind kind, size_t n_columns, size_t n_groups,
                              const DenseCells& to) {
  switch (kind) {
    case Kind::binary: return write_kind<Kind::binary>(rows, n_columns, n_groups, to);
    case Kind::poisson: return write_kind<Kind::poisson>(rows, n_columns, n_groups, to);
    default: return write_kind<Kind::multinomial>(rows, n_columns, n_groups, to);
  }
}

void write_product_cells(const SoftRows& rows, size_t n_columns, const double* center, double* cells, size_t pitch) {
  double y[most_product_columns + lanes] = {};
  for (size_t i = 0; i < rows.n_rows; i++) {
    const double* row = row_at(rows, i);
    double* out = cells + i * pitch;
    for (size_t at = 0; at < n_columns * sizeof(double); at += 64) {
      __builtin_prefetch(reinterpret_cast<Bytes>(row) + at + rows.lookahead, 0, 2);
    }
    for (size_t j = 0; j < n_columns; j++) y[j] = row[j] - center[j];
    for (size_t a = 0; a < n_columns; a++) {
      const Doubles factor = repeat(y[a]);
      // The last vector writes beyond its end; the data there are written later.
      for (size_t b = a; b < n_columns; b += lanes) store(out + b - a, factor * load(y + b));
      out += n_columns - a;
    }
    for (size_t j = 0; j < n_columns; j++) out[j] = y[j];
    out[n_columns] = 1.0;
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
