// Double-double sums of weights, distances from the anchor and their squares.
#include "functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Terms beyond this are refused, so that sums of many of them cannot overflow.
constexpr double largest_term = 1e300;

struct Sums {
  Pair weight, first, second;
};

// Adds one value (times its weight) to the running sums. The low parts are plain sums: what they lose is second order.
template <bool weighted>
inline void add_value(Sums& sums, Doubles v, Doubles w) {
  Pair square = two_product(v, v);
  Pair value = {v, Doubles{}};
  if (weighted) {
    value = two_product(w, v);
    const Pair scaled = two_product(w, square.high);
    square = {scaled.high, scaled.low + w * square.low};
  }
  const Pair first = two_sum(sums.first.high, value.high);
  const Pair second = two_sum(sums.second.high, square.high);
  sums.first = {first.high, sums.first.low + (weighted ? first.low + value.low : first.low)};
  sums.second = {second.high, sums.second.low + (second.low + square.low)};
}

template <bool weighted, size_t vectors>
inline void add_rows(const RowSet& set, size_t start, const double* anchor, Sums* sums) {
  Doubles origin[vectors];
  for (size_t k = 0; k < vectors; k++) origin[k] = load(anchor + start + k * lanes);
  for (size_t i = 0; i < set.n_rows; i++) {
    Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + start * sizeof(double);
    __builtin_prefetch(row + set.lookahead, 0, 2);
    if (vectors * lanes > 8) __builtin_prefetch(row + set.lookahead + 64, 0, 2);
    const Doubles w = weighted ? repeat(set.weights[i]) : Doubles{};
    for (size_t k = 0; k < vectors; k++) {
      add_value<weighted>(sums[k], load(reinterpret_cast<const double*>(row) + k * lanes) - origin[k], w);
    }
  }
}

// The same with NaN left out, and its weight too. Returns the lanes that had one.
template <bool weighted>
inline Mask add_rows_carefully(const RowSet& set, size_t start, const double* anchor, Sums& sums) {
  const Doubles origin = load(anchor + start);
  Mask absent = {};
  for (size_t i = 0; i < set.n_rows; i++) {
    Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + start * sizeof(double);
    const Doubles x = load(reinterpret_cast<const double*>(row));
    const Mask present = x == x;
    absent |= ~present;
    const Doubles w = keep(repeat(weighted ? set.weights[i] : 1.0), present);
    const Pair weight = two_sum(sums.weight.high, w);
    sums.weight = {weight.high, sums.weight.low + weight.low};
    add_value<weighted>(sums, keep(x - origin, present), w);
  }
  return absent;
}

inline Pair load_pair(const double* high, const double* low, size_t start) {
  return {load(high + start), load(low + start)};
}
inline void store_pair(Pair pair, Mask fresh, double* high, double* low, size_t start) {
  pair = quick_two_sum(pair.high, pair.low);
  store(high + start, choose(fresh, pair.high, load(high + start)));
  store(low + start, choose(fresh, pair.low, load(low + start)));
}
inline Sums load_sums(const MomentSums& sums, size_t start) {
  return {load_pair(sums.weight_high, sums.weight_low, start), load_pair(sums.first_high, sums.first_low, start),
          load_pair(sums.second_high, sums.second_low, start)};
}
inline void store_sums(const Sums& sums, Mask fresh, const MomentSums& out, size_t start) {
  store_pair(sums.weight, fresh, out.weight_high, out.weight_low, start);
  store_pair(sums.first, fresh, out.first_high, out.first_low, start);
  store_pair(sums.second, fresh, out.second_high, out.second_low, start);
}

// NaN and infinity spread to the sums, so one look at the end tells whether every value was an ordinary number.
inline bool ordinary(const Sums& sums, Mask fresh) { return all((sums.second.high <= largest_term) | ~fresh); }

template <bool weighted>
Outcome redo_panel(const RowSet& set, Panel panel, const double* anchor, const MomentSums& out) {
  Sums sums = load_sums(out, panel.start);
  const Mask absent = add_rows_carefully<weighted>(set, panel.start, anchor, sums);
  if (!ordinary(sums, panel.fresh)) {
    // Too large a total of good values is no error of any cell; only a single bad term is.
    const Doubles origin = load(anchor + panel.start);
    for (size_t i = 0; i < set.n_rows; i++) {
      Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + panel.start * sizeof(double);
      const Doubles x = load(reinterpret_cast<const double*>(row));
      const Doubles v = x - origin, w = repeat(weighted ? set.weights[i] : 1.0);
      if (!all((w * (v * v) <= largest_term) | (x != x) | ~panel.fresh)) return Outcome::bad;
    }
  }
  store_sums(sums, panel.fresh, out, panel.start);
  return all(~absent | ~panel.fresh) ? Outcome::clean : Outcome::missing;
}

template <bool weighted, size_t vectors>
Outcome sum_panels(const RowSet& set, size_t column, size_t width, const double* anchor, Pair weight,
                   const MomentSums& out) {
  Panel panels[vectors];
  Sums sums[vectors];
  for (size_t k = 0; k < vectors; k++) {
    panels[k] = panel_at(column + k * lanes, width);
    sums[k] = load_sums(out, panels[k].start);
  }
  add_rows<weighted, vectors>(set, panels[0].start, anchor, sums);
  Outcome outcome = Outcome::clean;
  for (size_t k = 0; k < vectors; k++) {
    if (ordinary(sums[k], panels[k].fresh)) {
      sums[k].weight = add(sums[k].weight, weight);
      store_sums(sums[k], panels[k].fresh, out, panels[k].start);
      continue;
    }
    const Outcome redone = redo_panel<weighted>(set, panels[k], anchor, out);
    if (redone == Outcome::bad) return redone;
    if (redone == Outcome::missing) outcome = redone;
  }
  return outcome;
}

template <bool weighted>
Outcome sum_rows(const RowSet& set, size_t width, const double* anchor, Pair weight, const MomentSums& out) {
  // Two vectors at once hide the latency of the sums; without AVX-512 there are too few registers for it.
  constexpr size_t vectors = lanes == 8 ? 2 : 1;
  Outcome worst = Outcome::clean;
  for (size_t column = 0; column < width;) {
    Outcome outcome;
    if (column + vectors * lanes <= width) {
      outcome = sum_panels<weighted, vectors>(set, column, width, anchor, weight, out);
      column += vectors * lanes;
    } else {
      outcome = sum_panels<weighted, 1>(set, column, width, anchor, weight, out);
      column += lanes;
    }
    if (outcome == Outcome::bad) return outcome;
    if (outcome == Outcome::missing) worst = outcome;
  }
  return worst;
}

}  // namespace

Outcome sum_moments(const RowSet& set, size_t width, const double* anchor, double weight_high, double weight_low,
                    const MomentSums& out) {
  const Pair weight = {repeat(weight_high), repeat(weight_low)};
  return set.weights ? sum_rows<true>(set, width, anchor, weight, out)
                     : sum_rows<false>(set, width, anchor, weight, out);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
