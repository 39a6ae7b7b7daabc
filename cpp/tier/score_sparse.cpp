// Sums of the weights that the entries of CSR rows point to.
#include "score.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Entries are handled in pieces that fit a small buffer, where values of other types become doubles.
constexpr size_t piece = 256;
constexpr size_t entries_ahead = 32;  // of the rows of the table, which lie anywhere

constexpr double largest_double = 1.7976931348623157e308;
constexpr double first_without_fraction = 4503599627370496.0;  // 2⁵²: from here on every double is whole

inline bool accepted(double x, Check check) {
  switch (check) {
    case Check::binary: return (x == 0.0) | (x == 1.0);
    case Check::finite: return (x >= -largest_double) & (x <= largest_double);
    case Check::nonnegative: return (x >= 0.0) & (x <= largest_double);
    case Check::count: break;
  }
  return (x >= 0.0) & (x <= largest_double) &
         (((x + first_without_fraction) - first_without_fraction == x) | (x >= first_without_fraction));
}

template <Check check, class Number>
inline bool convert_all(const Column& values, size_t start, size_t n, Number* out, double& sum) {
  bool good = true;
  with_cell_type(values.type, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    Bytes from = values.data + start * sizeof(Source);
    double partial[8] = {};
    unsigned bad = 0;
    size_t k = 0;
    for (; k + 8 <= n; k += 8) {
      for (size_t lane = 0; lane < 8; lane++) {
        const double x = static_cast<double>(read_as<Source>(from + (k + lane) * sizeof(Source)));
        bad |= !accepted(x, check);
        out[k + lane] = static_cast<Number>(x);
        partial[lane] += x;
      }
    }
    for (; k < n; k++) {
      const double x = static_cast<double>(read_as<Source>(from + k * sizeof(Source)));
      bad |= !accepted(x, check);
      out[k] = static_cast<Number>(x);
      partial[0] += x;
    }
    for (size_t lane = 0; lane < 8; lane++) sum += partial[lane];
    good = !bad;
  });
  return good;
}

// The values of a piece as numbers of another type; adds them to `sum`. False where one is refused.
template <class Number>
inline bool convert(const SparseChunk& chunk, size_t start, size_t n, Number* out, double& sum) {
  switch (chunk.check) {
    case Check::binary: return convert_all<Check::binary>(chunk.values, start, n, out, sum);
    case Check::count: return convert_all<Check::count>(chunk.values, start, n, out, sum);
    case Check::finite: return convert_all<Check::finite>(chunk.values, start, n, out, sum);
    case Check::nonnegative: break;
  }
  return convert_all<Check::nonnegative>(chunk.values, start, n, out, sum);
}

template <class Index>
inline bool within(const Index* indices, size_t n, uint64_t limit) {
  bool good = true;
  for (size_t k = 0; k < n; k++) good &= static_cast<uint64_t>(static_cast<int64_t>(indices[k])) < limit;
  return good;
}

// Asks for a row of the table by its number alone: the entry may be one that was not checked yet.
inline void prefetch_entry(const void* table, uint64_t index, size_t n_bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(table) + static_cast<uintptr_t>(index) * n_bytes;
  for (size_t byte = 0; byte < n_bytes && byte < 256; byte += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(at + byte));
  }
}

// A vector of eight classes or less, and what it takes to add to it.
struct DoubleLanes {
  using Number = double;
  using Vector = Doubles;
  static constexpr size_t n_lanes = lanes;
  static Vector read(const double* p) { return load(p); }
  static void write(double* p, Vector v) { store(p, v); }
  static Vector add(double x, Vector weight, Vector sum) { return multiply_add(repeat(x), weight, sum); }
};

#if defined(__AVX2__)
constexpr size_t float_lanes = 8;
#else
constexpr size_t float_lanes = 4;
#endif
struct FloatLanes {
  using Number = float;
  typedef float Vector __attribute__((vector_size(4 * float_lanes)));
  static constexpr size_t n_lanes = float_lanes;
  static Vector read(const float* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void write(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof(v)); }
  static Vector add(float x, Vector weight, Vector sum) {
#if defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_ps(_mm256_set1_ps(x), weight, sum);
#else
    return x * weight + sum;
#endif
  }
};

// out[class] += Σ value · table[index][class] over the n entries of a piece, for some neighbouring panels of classes.
// Even and odd entries have sums of their own, so that additions need not wait for each other.
template <class Lanes, size_t n_panels, bool skip_zero, class Index>
inline void add_piece(const Index* indices, const Index* end, const typename Lanes::Number* values, size_t n,
                      const typename Lanes::Number* table, size_t pitch, typename Lanes::Number* out) {
  constexpr size_t width = n_panels * (panel_classes / Lanes::n_lanes);
  typename Lanes::Vector sum[2][width];
#pragma GCC unroll 16
  for (size_t v = 0; v < width; v++) {
    sum[0][v] = Lanes::read(out + v * Lanes::n_lanes);
    sum[1][v] = typename Lanes::Vector{};
  }
  auto add = [&](size_t k, size_t which) __attribute__((always_inline)) {
    const Index* ahead = end - indices > static_cast<ptrdiff_t>(k + entries_ahead) ? indices + k + entries_ahead : end - 1;
    prefetch_entry(table, static_cast<uint64_t>(*ahead), n_panels * panel_classes * sizeof(*table));
    if (skip_zero && values[k] == 0) return;
    const auto* row = table + static_cast<size_t>(indices[k]) * pitch;
#pragma GCC unroll 16
    for (size_t v = 0; v < width; v++) {
      sum[which][v] = Lanes::add(values[k], Lanes::read(row + v * Lanes::n_lanes), sum[which][v]);
    }
  };
  size_t k = 0;
  for (; k + 2 <= n; k += 2) {
    add(k, 0);
    add(k + 1, 1);
  }
  if (k < n) add(k, 0);
#pragma GCC unroll 16
  for (size_t v = 0; v < width; v++) Lanes::write(out + v * Lanes::n_lanes, sum[0][v] + sum[1][v]);
}

template <class Lanes, bool skip_zero, class Index>
inline void add_all_panels(const Index* indices, const Index* end, const typename Lanes::Number* values, size_t n,
                           const typename Lanes::Number* table, size_t pitch, typename Lanes::Number* out) {
  for (size_t start = 0; start < pitch;) {
    switch ((pitch - start) / panel_classes) {
      case 1:
        add_piece<Lanes, 1, skip_zero>(indices, end, values, n, table + start, pitch, out + start);
        start += panel_classes;
        break;
      case 2:
        add_piece<Lanes, 2, skip_zero>(indices, end, values, n, table + start, pitch, out + start);
        start += 2 * panel_classes;
        break;
      default:
        add_piece<Lanes, 3, skip_zero>(indices, end, values, n, table + start, pitch, out + start);
        start += 3 * panel_classes;
    }
  }
}

// Adds a row's weights to `out` and its values to `sum`. False where an index or a value is refused.
template <class Lanes, class Index>
inline bool add_row(const SparseChunk& chunk, size_t row, const typename Lanes::Number* table, size_t pitch,
                    typename Lanes::Number* out, double& sum) {
  typename Lanes::Number values[piece];
  const Index* indices = static_cast<const Index*>(chunk.indices);
  const Index* end = indices + chunk.n_entries;
  const size_t stop = static_cast<size_t>(chunk.extents[row].stop);
  for (size_t start = static_cast<size_t>(chunk.extents[row].start); start < stop; start += piece) {
    const size_t n = smaller(piece, stop - start);
    if (!within(indices + start, n, chunk.n_columns)) return false;
    if (!convert(chunk, start, n, values, sum)) return false;
    if (chunk.skip_zero) {
      add_all_panels<Lanes, true>(indices + start, end, values, n, table, pitch, out);
    } else {
      add_all_panels<Lanes, false>(indices + start, end, values, n, table, pitch, out);
    }
  }
  return true;
}

template <class Index>
bool sum_rows(const SparseChunk& chunk, const double* table, size_t pitch, double* out) {
  for (size_t row = 0; row < chunk.n_rows; row++) {
    double sum = 0.0;
    double* target = out + row * pitch;
    for (size_t k = 0; k < pitch; k++) target[k] = 0.0;
    if (!add_row<DoubleLanes, Index>(chunk, row, table, pitch, target, sum)) return false;
  }
  return true;
}

// Every weight and every start is at most 0 and every value at least 0, so no term cancels another and the sum of n terms
// is within (n + 6)·2⁻²⁴ of itself: two roundings when the factors became float32, one for each addition. The sums in
// float64, which this must agree with, are within (n + 3)·2⁻⁵³ of the sum of their terms' magnitudes.
int64_t certain_best(const float* sums, size_t n_classes, size_t n_terms, double total, double largest) {
  float best = sums[0], second = -__builtin_inff();
  int64_t index = 0;
  for (size_t k = 1; k < n_classes; k++) {
    if (sums[k] > best) {
      second = best;
      best = sums[k];
      index = static_cast<int64_t>(k);
    } else if (!(sums[k] <= second)) {
      second = sums[k];
    }
  }
  const double count = static_cast<double>(n_terms);
  const double relative = (count + 8.0) * 1.01 * 0x1p-24;
  const double absolute = 2.02 * (count + 4.0) * 0x1p-53 * largest * (total + 1.0) + 1e-30;
  if (!(relative < 0.01) || !(best >= -1e30f) || !(total < 1e30)) return -1;
  if (second < -1e37f) second = -1e37f;  // rather this than a difference of infinities
  const double margin = static_cast<double>(best) * (1.0 + relative) - static_cast<double>(second) * (1.0 - relative);
  return margin > absolute ? index : -1;
}

template <class Index>
bool guess_rows(const SparseChunk& chunk, const float* start, const float* table, size_t pitch, size_t n_classes,
                double largest, float* sums, int64_t* best) {
  for (size_t row = 0; row < chunk.n_rows; row++) {
    double total = 0.0;
    for (size_t k = 0; k < pitch; k++) sums[k] = start[k];
    if (!add_row<FloatLanes, Index>(chunk, row, table, pitch, sums, total)) return false;
    const size_t n_terms = static_cast<size_t>(chunk.extents[row].stop - chunk.extents[row].start);
    best[row] = certain_best(sums, n_classes, n_terms, total, largest);
  }
  return true;
}

}  // namespace

bool sum_weights(const SparseChunk& chunk, const double* table, size_t pitch, double* out) {
  return chunk.wide_indices ? sum_rows<int64_t>(chunk, table, pitch, out) : sum_rows<int32_t>(chunk, table, pitch, out);
}

bool guess_best(const SparseChunk& chunk, const float* start, const float* table, size_t pitch, size_t n_classes,
                double largest, float* sums, int64_t* best) {
  return chunk.wide_indices ? guess_rows<int64_t>(chunk, start, table, pitch, n_classes, largest, sums, best)
                            : guess_rows<int32_t>(chunk, start, table, pitch, n_classes, largest, sums, best);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
