// Double-double sums of weights, deviations from the anchor and their squares.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Larger terms are errors, so that sums of many terms cannot overflow.
constexpr double largest_term = 1e300;

struct Sums {
  Pair weight, first, second;
};

// Adds one value (times its weight) to the running sums. The low parts are plain sums: their error is of second order.
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

inline const double* row_at(const RowSet& set, size_t i, size_t start) {
  return reinterpret_cast<const double*>(set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride) + start;
}

template <bool weighted, size_t vectors>
inline void add_rows(const RowSet& set, size_t start, const double* anchor, Sums* sums) {
  Doubles origin[vectors];
  for (size_t k = 0; k < vectors; k++) origin[k] = load(anchor + start + k * lanes);
  for (size_t i = 0; i < set.n_rows; i++) {
    const double* row = row_at(set, i, start);
    for (size_t k = 0; k < vectors * lanes; k += 8) {
      __builtin_prefetch(reinterpret_cast<Bytes>(row + k) + set.lookahead, 0, 2);
    }
    const Doubles w = weighted ? repeat(set.weights[i]) : Doubles{};
    for (size_t k = 0; k < vectors; k++) add_value<weighted>(sums[k], load(row + k * lanes) - origin[k], w);
  }
}

// The same, skipping NaN and its weight. Adds the lanes that had one to `absent`.
template <bool weighted, size_t vectors>
inline void add_rows_carefully(const RowSet& set, size_t start, const double* anchor, Sums* sums, Mask* absent) {
  Doubles origin[vectors];
  for (size_t k = 0; k < vectors; k++) origin[k] = load(anchor + start + k * lanes);
  for (size_t i = 0; i < set.n_rows; i++) {
    const double* row = row_at(set, i, start);
    for (size_t k = 0; k < vectors * lanes; k += 8) {
      __builtin_prefetch(reinterpret_cast<Bytes>(row + k) + set.lookahead, 0, 2);
    }
    for (size_t k = 0; k < vectors; k++) {
      const Doubles x = load(row + k * lanes);
      const Mask present = x == x;
      absent[k] |= ~present;
      const Doubles w = keep(repeat(weighted ? set.weights[i] : 1.0), present);
      if (weighted) {
        const Pair weight = two_sum(sums[k].weight.high, w);
        sums[k].weight = {weight.high, sums[k].weight.low + weight.low};
      } else {
        sums[k].weight.high += w;  // an integer: exact
      }
      add_value<weighted>(sums[k], keep(x - origin[k], present), w);
    }
  }
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

// NaN and infinity propagate to the sums, so one check at the end covers every value.
inline bool ordinary(const Sums& sums, Mask fresh) { return all((sums.second.high <= largest_term) | ~fresh); }

// An overflow of the total is not an error of any cell; only a single invalid term is.
template <bool weighted>
bool has_bad_term(const RowSet& set, Panel panel, const double* anchor) {
  const Doubles origin = load(anchor + panel.start);
  for (size_t i = 0; i < set.n_rows; i++) {
    const Doubles x = load(row_at(set, i, panel.start));
    const Doubles v = x - origin, w = repeat(weighted ? set.weights[i] : 1.0);
    if (!all((w * (v * v) <= largest_term) | (x != x) | ~panel.fresh)) return true;
  }
  return false;
}

// One panel, or several neighboring ones. First without a check for missing values, unless earlier rows had some; the
// sums in memory are only updated if there were none.
template <bool weighted, size_t vectors>
Outcome sum_panels(const RowSet& set, size_t column, size_t width, const double* anchor, Pair weight, bool careful,
                   const MomentSums& out) {
  Panel panels[vectors];
  Sums sums[vectors];
  for (size_t k = 0; k < vectors; k++) {
    panels[k] = panel_at(column + k * lanes, width);
    sums[k] = load_sums(out, panels[k].start);
  }
  if (!careful) {
    add_rows<weighted, vectors>(set, panels[0].start, anchor, sums);
    bool good = true;
    for (size_t k = 0; k < vectors; k++) good &= ordinary(sums[k], panels[k].fresh);
    if (good) {
      for (size_t k = 0; k < vectors; k++) {
        sums[k].weight = add(sums[k].weight, weight);
        store_sums(sums[k], panels[k].fresh, out, panels[k].start);
      }
      return Outcome::clean;
    }
    for (size_t k = 0; k < vectors; k++) sums[k] = load_sums(out, panels[k].start);
  }
  Mask absent[vectors] = {};
  add_rows_carefully<weighted, vectors>(set, panels[0].start, anchor, sums, absent);
  Outcome outcome = Outcome::clean;
  for (size_t k = 0; k < vectors; k++) {
    if (!ordinary(sums[k], panels[k].fresh) && has_bad_term<weighted>(set, panels[k], anchor)) return Outcome::bad;
    store_sums(sums[k], panels[k].fresh, out, panels[k].start);
    if (!all(~absent[k] | ~panels[k].fresh)) outcome = Outcome::missing;
  }
  return outcome;
}

template <bool weighted>
Outcome sum_rows(const RowSet& set, size_t width, const double* anchor, Pair weight, bool careful,
                 const MomentSums& out) {
  // Two vectors at once hide the latency of the sums; without AVX-512 there are too few registers.
  constexpr size_t vectors = lanes == 8 ? 2 : 1;
  Outcome worst = Outcome::clean;
  for (size_t column = 0; column < width;) {
    Outcome outcome;
    if (column + vectors * lanes <= width) {
      outcome = sum_panels<weighted, vectors>(set, column, width, anchor, weight, careful, out);
      column += vectors * lanes;
    } else {
      outcome = sum_panels<weighted, 1>(set, column, width, anchor, weight, careful, out);
      column += lanes;
    }
    if (outcome == Outcome::bad) return outcome;
    if (outcome == Outcome::missing) worst = outcome;
  }
  return worst;
}

}  // namespace

Outcome sum_moments(const RowSet& set, size_t width, const double* anchor, double weight_high, double weight_low,
                    bool careful, const MomentSums& out) {
  const Pair weight = {repeat(weight_high), repeat(weight_low)};
  return set.weights ? sum_rows<true>(set, width, anchor, weight, careful, out)
                     : sum_rows<false>(set, width, anchor, weight, careful, out);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
