// Moments with soft weights. Such sums are never subtracted from, so they need not be exact to 32 digits: a block of
// rows is summed in float64 about a center near the group's mean, moved to the anchor, and added to the double-double
// sums.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr double largest_term = 1e300;  // see moments.cpp

// Neighboring panels of one group. `careful`: NaN and its weight are skipped; `absent` gets the lanes with NaN.
template <bool careful, size_t vectors>
inline void sum_panels(const SoftRows& rows, size_t column, size_t width, const double* weights, const PlainSums& out,
                       Mask& absent) {
  Panel panels[vectors];
  Doubles center[vectors], weight[vectors], first[vectors], second[vectors];
  for (size_t k = 0; k < vectors; k++) {
    panels[k] = panel_at(column + k * lanes, width);
    const size_t start = panels[k].start;
    center[k] = load(out.center + start);
    weight[k] = load(out.weight + start);
    first[k] = load(out.first + start);
    second[k] = load(out.second + start);
  }
  Mask present[vectors];
  for (size_t k = 0; k < vectors; k++) present[k] = ~Mask{};
  Doubles everywhere = {};  // the weight of all columns if none is missing
  for (size_t i = 0; i < rows.n_rows; i++) {
    const auto* row = reinterpret_cast<const double*>(rows.base + static_cast<ptrdiff_t>(i) * rows.row_stride);
    const double share = weights[i * rows.weight_pitch];
    if (careful && share == 0.0) continue;
    const Doubles w = repeat(share);
    if (!careful) everywhere += w;
    for (size_t k = 0; k < vectors; k++) {
      const Doubles x = load(row + panels[k].start);
      if (rows.lookahead) __builtin_prefetch(reinterpret_cast<Bytes>(row + panels[k].start) + rows.lookahead, 0, 2);
      Doubles y = x - center[k];
      if (careful) {
        const Mask there = x == x;
        present[k] &= there;
        y = keep(y, there);
        weight[k] += keep(w, there);
      }
      const Doubles moved = w * y;
      first[k] += moved;
      second[k] = multiply_add(moved, y, second[k]);
    }
  }
  for (size_t k = 0; k < vectors; k++) {
    const size_t start = panels[k].start;
    auto put = [&](double* sums, Doubles value) {
      store(sums + start, choose(panels[k].fresh, value, load(sums + start)));
    };
    absent |= ~present[k] & panels[k].fresh;
    put(out.weight, careful ? weight[k] : weight[k] + everywhere);
    put(out.first, first[k]);
    put(out.second, second[k]);
  }
}

template <bool careful>
bool sum_columns(const SoftRows& rows, size_t group, size_t width, const PlainSums& out) {
  const double* weights = rows.weights + group;
  Mask absent = {};
  size_t column = 0;
  // Three vectors at once hide the latency of the sums; narrower vectors permit fewer.
  constexpr size_t vectors = lanes == 8 ? 3 : 2;
  for (; column + vectors * lanes < width + lanes; column += vectors * lanes) {
    sum_panels<careful, vectors>(rows, column, width, weights, out, absent);
  }
  for (; column < width; column += lanes) sum_panels<careful, 1>(rows, column, width, weights, out, absent);
  return !all(absent == 0);
}

}  // namespace

bool sum_plain_moments(const SoftRows& rows, size_t group, size_t width, bool careful, const PlainSums& out) {
  return careful ? sum_columns<true>(rows, group, width, out) : sum_columns<false>(rows, group, width, out);
}

Fit judge_plain_moments(const PlainSums& sums, size_t width, const double* anchor) {
  Fit fit = Fit::good;
  for (size_t column = 0; column < width; column += lanes) {
    const Panel panel = panel_at(column, width);
    const Doubles center = load(sums.center + panel.start), weight = load(sums.weight + panel.start);
    const Doubles first = load(sums.first + panel.start), second = load(sums.second + panel.start);
    const Doubles shift = center - load(anchor + panel.start);
    // Σw·(x − anchor)², an upper bound of every single term. NaN and infinity are detected here as well.
    const Doubles about = second + shift * (2.0 * first + weight * shift);
    if (!all(about <= largest_term)) return Fit::bad;
    // Squares a thousand times the spread cost three digits, unless the center is the nearest double to the mean.
    const Doubles mean = first / weight, most = 1e-15 * center;
    const Doubles spread = load(sums.spread + panel.start) + (second - first * mean);
    const Mask far = (second > 1e3 * spread) & (mean * mean > most * most);
    if (!all(~far)) fit = Fit::far;
  }
  return fit;
}

void move_center(const PlainSums& sums, size_t width) {
  for (size_t column = 0; column < width; column += lanes) {
    const Panel panel = panel_at(column, width);
    const Doubles center = load(sums.center + panel.start);
    const Doubles moved = center + load(sums.first + panel.start) / load(sums.weight + panel.start);
    const Mask fine = (moved <= 1e150) & (moved >= -1e150) & panel.fresh;  // not without a positive weight
    store(sums.center + panel.start, choose(fine, moved, center));
  }
}

void add_plain_moments(const PlainSums& sums, size_t width, const double* anchor, const MomentSums& out) {
  for (size_t column = 0; column < width; column += lanes) {
    const Panel panel = panel_at(column, width);
    auto load_at = [&](const double* from) { return load(from + panel.start); };
    const Doubles weight = load_at(sums.weight), plain = load_at(sums.first);
    const Pair shift = two_sum(load_at(sums.center), -load_at(anchor));
    // With δ = center − anchor: Σw·(y + δ) = s + W·δ, and Σw·(y + δ)² = S + δ·s + (s + W·δ)·δ, with double-double
    // products.
    Pair moved = two_product(weight, shift.high);
    moved.low += weight * shift.low;
    const Pair first = add(Pair{plain, Doubles{}}, moved);
    Pair left = two_product(shift.high, plain), right = two_product(first.high, shift.high);
    left.low += shift.low * plain;
    right.low += first.high * shift.low + first.low * shift.high;
    const Pair second = add(add(Pair{load_at(sums.second), Doubles{}}, left), right);
    auto put = [&](double* high, double* low, Pair more) {
      const Pair total = add(Pair{load_at(high), load_at(low)}, more);
      store(high + panel.start, choose(panel.fresh, total.high, load_at(high)));
      store(low + panel.start, choose(panel.fresh, total.low, load_at(low)));
    };
    put(out.weight_high, out.weight_low, Pair{weight, Doubles{}});
    put(out.first_high, out.first_low, first);
    put(out.second_high, out.second_low, second);
    const Doubles about_mean = load_at(sums.second) - plain * plain / weight, before = load_at(sums.spread);
    store(sums.spread + panel.start, choose(panel.fresh & (about_mean > 0.0), before + about_mean, before));
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
