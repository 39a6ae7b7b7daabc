// Conversion of the scores of a chunk to the requested results.
#include "simd/log_exp.h"
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

void add_turned(const double* rows, size_t pitch, size_t n_rows, size_t n_classes, double* scores, size_t score_pitch) {
  size_t i = 0;
  for (; i + lanes <= n_rows; i += lanes) {
    for (size_t k = 0; k < n_classes; k += lanes) {
      Doubles square[lanes];
      for (size_t r = 0; r < lanes; r++) square[r] = load(rows + (i + r) * pitch + k);
      turn_square(square);
      const size_t n = smaller(lanes, n_classes - k);
      for (size_t c = 0; c < n; c++) {
        double* at = scores + (k + c) * score_pitch + i;
        store(at, load(at) + square[c]);
      }
    }
  }
  for (; i < n_rows; i++) {
    for (size_t k = 0; k < n_classes; k++) scores[k * score_pitch + i] += rows[i * pitch + k];
  }
}

namespace {

constexpr double least_clear_score = -1e15;  // as in reference/scoring.py

}  // namespace

// The first class with the maximum; NaN counts as the largest, as in NumPy. For a score whose rounding error may
// exceed the differences between classes (or NaN), the complement of the class.
void best_classes(const double* scores, size_t pitch, size_t n_rows, size_t n_classes, int64_t* best) {
  for (size_t i = 0; i < n_rows; i += lanes) {
    Doubles largest = load(scores + i);
    Mask index = {};
    for (size_t k = 1; k < n_classes; k++) {
      const Doubles score = load(scores + k * pitch + i);
      const Mask better = ~(score <= largest) & (largest == largest);
      largest = choose(better, score, largest);
      index = (better & static_cast<int64_t>(k)) | (index & ~better);
    }
    index ^= ~(largest >= least_clear_score);
    const size_t n = smaller(lanes, n_rows - i);
    if (n == lanes) {
      __builtin_memcpy(best + i, &index, sizeof(index));
    } else {
      for (size_t lane = 0; lane < n; lane++) best[i + lane] = index[lane];
    }
  }
}

// Relative to the best class, not log p(row), which may be so large that digits are lost. The 1 of the best class is
// not part of the sum, so that log p of a nearly certain class keeps its digits.
void normalize(double* scores, size_t pitch, size_t n_rows, size_t n_classes, const double* log_prior,
               double* density) {
  for (size_t i = 0; i < n_rows; i += lanes) {
    Doubles best = load(scores + i);
    Mask index = {};
    for (size_t k = 1; k < n_classes; k++) {
      const Doubles score = load(scores + k * pitch + i);
      const Mask better = ~(score <= best) & (best == best);
      best = choose(better, score, best);
      index = (better & static_cast<int64_t>(k)) | (index & ~better);
    }
    const Mask impossible = opaque(best == -__builtin_inf());
    best = keep(best, ~impossible);
    Doubles rest = {};
    for (size_t k = 0; k < n_classes; k++) {
      const Doubles share = exp_of_negative(load(scores + k * pitch + i) - best);
      rest += keep(share, index != static_cast<int64_t>(k));
    }
    rest += best - best;  // NaN stays NaN, even for a single class
    Doubles exponent = {};
    move_exponent(rest, exponent);
    const Doubles log_total = log_product(rest, exponent);
    for (size_t k = 0; k < n_classes; k++) {
      double* at = scores + k * pitch + i;
      store(at, choose(impossible, repeat(log_prior[k]), (load(at) - best) - log_total));
    }
    store(density + i, choose(impossible, repeat(-__builtin_inf()), best + log_total));
  }
}

void turn_scores(const double* scores, size_t pitch, size_t n_rows, size_t n_classes, double* out) {
  if (n_classes < lanes) {
    for (size_t i = 0; i < n_rows; i++) {
      for (size_t k = 0; k < n_classes; k++) out[i * n_classes + k] = scores[k * pitch + i];
    }
    return;
  }
  size_t i = 0;
  for (; i + lanes <= n_rows; i += lanes) {
    for (size_t k = 0; k < n_classes; k += lanes) {
      const size_t start = smaller(k, n_classes - lanes);
      Doubles square[lanes];
      for (size_t c = 0; c < lanes; c++) square[c] = load(scores + (start + c) * pitch + i);
      turn_square(square);
      for (size_t r = 0; r < lanes; r++) store(out + (i + r) * n_classes + start, square[r]);
    }
  }
  for (; i < n_rows; i++) {
    for (size_t k = 0; k < n_classes; k++) out[i * n_classes + k] = scores[k * pitch + i];
  }
}

namespace {

// n_together runs at once, so that the bounds are read and written once for all of them.
template <class Source, size_t n_together>
inline void widen_by(Bytes cells, ptrdiff_t stride, size_t n, Source* low, Source* high) {
  typedef Source Vector __attribute__((vector_size(8 * lanes), aligned(1), may_alias));
  constexpr size_t width = 8 * lanes / sizeof(Source);
  size_t k = 0;
  for (; k + width <= n; k += width) {
    Vector least = *reinterpret_cast<const Vector*>(low + k), most = *reinterpret_cast<const Vector*>(high + k);
    for (size_t run = 0; run < n_together; run++) {
      const Vector cell =
          *reinterpret_cast<const Vector*>(cells + static_cast<ptrdiff_t>(run) * stride + k * sizeof(Source));
      least = cell < least ? cell : least;
      most = cell > most ? cell : most;
    }
    *reinterpret_cast<Vector*>(low + k) = least;
    *reinterpret_cast<Vector*>(high + k) = most;
  }
  for (; k < n; k++) {
    for (size_t run = 0; run < n_together; run++) {
      const Source cell = read_as<Source>(cells + static_cast<ptrdiff_t>(run) * stride + k * sizeof(Source));
      low[k] = smaller(low[k], cell);
      high[k] = larger(high[k], cell);
    }
  }
}

template <class Source>
inline void widen_all(Bytes cells, ptrdiff_t stride, size_t n_runs, size_t n, Source* low, Source* high) {
  constexpr size_t together = 4;
  size_t run = 0;
  for (; run + together <= n_runs; run += together, cells += static_cast<ptrdiff_t>(together) * stride) {
    widen_by<Source, together>(cells, stride, n, low, high);
  }
  for (; run < n_runs; run++, cells += stride) widen_by<Source, 1>(cells, stride, n, low, high);
}

}  // namespace

void widen_ranges(Type type, Bytes cells, ptrdiff_t stride, size_t n_runs, size_t n, void* low, void* high) {
  with_cell_type(type, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    widen_all<Source>(cells, stride, n_runs, n, static_cast<Source*>(low), static_cast<Source*>(high));
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
