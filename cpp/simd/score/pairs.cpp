// One-dependence scores: every column in turn is the parent of all others. The parent's level selects a panel with one
// row for every level of every column, and the term of a row is the sum of the panel's rows that its codes select.
#include "simd/log_exp.h"
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t rows_at_once = lanes == 8 ? 4 : 2;

// out[row · out_pitch + class] = Σ panels[row][entry + class]
template <size_t n_rows>
inline void sum_terms(const double* const* panels, const uint32_t* entries, const PairTable& pairs, double* out,
                      size_t out_pitch) {
  for (size_t start = 0; start < pairs.pitch; start += panel_classes) {
    constexpr size_t width = panel_classes / lanes;
    Doubles sum[n_rows][width] = {};
    for (size_t j = 0; j < pairs.n_columns; j++) {
#pragma GCC unroll 4
      for (size_t r = 0; r < n_rows; r++) {
        const double* row = panels[r] + entries[r * pairs.n_columns + j] + start;
#pragma GCC unroll 4
        for (size_t v = 0; v < width; v++) sum[r][v] += load(row + v * lanes);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 4
      for (size_t v = 0; v < width; v++) store(out + r * out_pitch + start + v * lanes, sum[r][v]);
    }
  }
}

// out[class] = log Σ exp terms[term · pitch + class]
inline void add_terms(const double* terms, size_t n_terms, size_t pitch, double* out) {
  for (size_t k = 0; k < pitch; k += lanes) {
    Doubles best = load(terms + k);
    for (size_t t = 1; t < n_terms; t++) {
      const Doubles term = load(terms + t * pitch + k);
      best = choose(term > best, term, best);
    }
    const Mask impossible = opaque(best == -__builtin_inf());
    const Doubles from = keep(best, ~impossible);
    Doubles total = {};
    for (size_t t = 0; t < n_terms; t++) total += exp_of_negative(load(terms + t * pitch + k) - from);
    total -= 1.0;  // the term of the best
    Doubles exponent = {};
    move_exponent(total, exponent);
    store(out + k, choose(impossible, repeat(-__builtin_inf()), from + log_product(total, exponent)));
  }
}

}  // namespace

void score_pairs(const uint32_t* entries, size_t n_rows, const PairTable& pairs, double* terms, double* out) {
  const size_t d = pairs.n_columns, pitch = pairs.pitch, panel = (pairs.n_levels + 1) * pitch;
  double* of_levels = terms + n_rows * d * pitch;
  for (size_t j = 0; j < d; j++) {  // its panels stay in cache during the loop over rows
    const double* first = pairs.table + (pairs.offsets[j] / pitch - 1) * panel;
    const double* panels[rows_at_once];
    size_t i = 0;
    while (i < n_rows) {
      size_t n = 0;  // rows in which the parent is observed
      while (n < rows_at_once && i + n < n_rows && entries[(i + n) * d + j]) {
        panels[n] = pairs.table + (entries[(i + n) * d + j] / pitch - 1) * panel;
        n++;
      }
      double* at = terms + (i * d + j) * pitch;
      if (n == rows_at_once) {
        sum_terms<rows_at_once>(panels, entries + i * d, pairs, at, d * pitch);
        i += n;
        continue;
      }
      if (n) {
        sum_terms<1>(panels, entries + i * d, pairs, at, d * pitch);
      } else {  // over all its levels
        for (size_t level = 0; level < pairs.sizes[j]; level++) {
          panels[0] = first + level * panel;
          sum_terms<1>(panels, entries + i * d, pairs, of_levels + level * pitch, pitch);
          for (size_t k = 0; k < pitch; k += lanes) {  // the term of the level itself, which no code selects
            double* sum = of_levels + level * pitch + k;
            store(sum, load(sum) + load(panels[0] + pairs.offsets[j] + level * pitch + k));
          }
        }
        add_terms(of_levels, pairs.sizes[j], pitch, at);
      }
      i++;
    }
  }
  for (size_t i = 0; i < n_rows; i++) add_terms(terms + i * d * pitch, d, pitch, out + i * pitch);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
