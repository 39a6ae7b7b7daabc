// Sums of binary, Poisson and multinomial cells.
#include "simd/cells.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

inline Bytes row_at(const RowSet& set, size_t i, size_t start) {
  return set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + start * sizeof(double);
}

template <Kind kind, bool weighted, bool careful>
inline Outcome sum_panel(const RowSet& set, Panel panel, double set_weight, const DenseSums& out) {
  Doubles total = {}, weight = {}, log_base = {};
  Mask good = ~Mask{}, whole = ~Mask{};
  for (size_t i = 0; i < set.n_rows; i++) {
    Bytes row = row_at(set, i, panel.start);
    __builtin_prefetch(row + set.lookahead, 0, 2);
    Doubles x = load(reinterpret_cast<const double*>(row));
    Doubles w = repeat(weighted ? set.weights[i] : 1.0);
    if (kind == Kind::poisson) x = keep(x, panel.fresh);  // logarithms of the other lanes would be computed twice
    if (careful) {
      const Mask present = x == x;
      x = keep(x, present);
      w = keep(w, present);
      weight += w;
      whole &= present;
    }
    good &= allowed<kind>(x);
    total += weighted ? w * x : x;
    if (kind == Kind::poisson && !none_above_one(x)) {
      // An invalid value must not index the table; the whole block is then repeated or an error.
      if (!all(allowed<kind>(x))) break;
      log_base -= w * log_factorials(x);
    }
  }
  if (!all(good | ~panel.fresh)) return Outcome::bad;
  auto add_to = [&](double* sums, Doubles value) {
    store(sums + panel.start, load(sums + panel.start) + keep(value, panel.fresh));
  };
  add_to(out.total, total);
  add_to(out.weight, choose(whole, repeat(set_weight), weight));
  if (kind == Kind::poisson) add_to(out.log_base, log_base);
  return careful ? Outcome::missing : Outcome::clean;
}

template <Kind kind, bool weighted>
Outcome sum_rows(const RowSet& set, size_t width, double set_weight, const DenseSums& out) {
  Outcome worst = Outcome::clean;
  for (size_t column = 0; column < width; column += lanes) {
    const Panel panel = panel_at(column, width);
    Outcome outcome = sum_panel<kind, weighted, false>(set, panel, set_weight, out);
    if (outcome == Outcome::bad && kind != Kind::multinomial) {
      outcome = sum_panel<kind, weighted, true>(set, panel, set_weight, out);
    }
    if (outcome == Outcome::bad) return outcome;
    if (outcome == Outcome::missing) worst = outcome;
  }
  return worst;
}

}  // namespace

Outcome sum_dense(const RowSet& set, Kind kind, size_t width, double set_weight, const DenseSums& out) {
  const bool weighted = set.weights != nullptr;
  switch (kind) {
    case Kind::binary:
      return weighted ? sum_rows<Kind::binary, true>(set, width, set_weight, out)
                      : sum_rows<Kind::binary, false>(set, width, set_weight, out);
    case Kind::poisson:
      return weighted ? sum_rows<Kind::poisson, true>(set, width, set_weight, out)
                      : sum_rows<Kind::poisson, false>(set, width, set_weight, out);
    default:
      return weighted ? sum_rows<Kind::multinomial, true>(set, width, set_weight, out)
                      : sum_rows<Kind::multinomial, false>(set, width, set_weight, out);
  }
}

void multinomial_terms(Bytes base, ptrdiff_t row_stride, size_t n_rows, size_t n_columns, double* terms) {
  for (size_t i = 0; i < n_rows; i++) {
    const double* row = reinterpret_cast<const double*>(base + static_cast<ptrdiff_t>(i) * row_stride);
    Doubles sums[vectors_of_eight] = {}, inners[vectors_of_eight] = {};
    each_eight(row, n_columns, [&](size_t k, Doubles x) {
      sums[k] += x;
      // Most counts are 0 or 1, with log x! = 0; a fraction in between needs the function. Invalid cells were detected
      // before, or belong to skipped rows, whose term is unused.
      if (all((x == 0.0) | (x == 1.0))) return;
      inners[k] += log_factorials(keep(x, (x > 0.0) & (x <= largest_double)));
    });
    const double sum = spread_sum(sums)[0], inner = spread_sum(inners)[0];
    terms[i] = sum >= 0.0 && sum <= largest_double ? log_factorial(sum) - inner : 0.0;
  }
}

bool sum_binary_bytes(const RowSet& set, size_t n_columns, uint32_t* total) {
  ByteVector seen = {};
  for (size_t column = 0; column < n_columns; column += byte_lanes) {
    const size_t start = smaller(column, n_columns - byte_lanes);
    ByteVector sum = {}, any = {};
    for (size_t i = 0; i < set.n_rows; i++) {
      Bytes row = set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride + start;
      __builtin_prefetch(row + set.lookahead, 0, 2);
      const ByteVector x = *reinterpret_cast<const UnalignedBytes*>(row);
      sum += x;  // at most 255 rows of ones: no overflow
      any |= x;
    }
    seen |= any;
    uint8_t sums[byte_lanes];
    __builtin_memcpy(sums, &sum, byte_lanes);
    for (size_t lane = column - start; lane < byte_lanes; lane++) total[start + lane] += sums[lane];
  }
  uint8_t parts[byte_lanes], united = 0;
  __builtin_memcpy(parts, &seen, byte_lanes);
  for (uint8_t part : parts) united |= part;
  return united <= 1;
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
