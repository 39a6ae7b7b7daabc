// Sums of the weights selected by the entries of CSR rows.
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Entries are processed in pieces that fit into a small buffer, where values of other types are converted to doubles.
constexpr size_t piece = 256;
constexpr size_t entries_ahead = 32;  // prefetch distance for the rows of the table, which are accessed randomly
constexpr size_t rows_ahead = 4;

typedef float NarrowDoubles __attribute__((vector_size(4 * lanes)));

inline void put(double* out, Doubles values) { store(out, values); }
inline void put(float* out, Doubles values) {
  const NarrowDoubles narrow = __builtin_convertvector(values, NarrowDoubles);
  __builtin_memcpy(out, &narrow, sizeof(narrow));
}

template <Check check, class Number>
inline bool take_values(const double* x, size_t n, Number* out, double& sum) {
  Mask good = ~Mask{};
  Doubles sums = {};
  size_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    const Doubles values = load(x + k);
    good &= accepted<check>(values);
    sums += values;
    put(out + k, values);
  }
  double rest[lanes] = {};
  for (size_t lane = 0; k + lane < n; lane++) {
    rest[lane] = x[k + lane];
    out[k + lane] = static_cast<Number>(x[k + lane]);
  }
  good &= accepted<check>(load(rest));
  sums += load(rest);
  for (size_t lane = 0; lane < lanes; lane++) sum += sums[lane];
  return all(good);
}

// The values of a piece as numbers of another type; adds them to `sum`. False if one is not allowed.
template <class Number>
inline bool convert(const SparseChunk& chunk, size_t start, size_t n, Number* out, double& sum) {
  double buffer[piece];
  const double* x = buffer;
  with_cell_type(chunk.values.type, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    Bytes from = chunk.values.data + start * sizeof(Source);
    if (chunk.values.type == Type::float64) {
      x = reinterpret_cast<const double*>(from);
    } else {
      for (size_t k = 0; k < n; k++) buffer[k] = static_cast<double>(read_as<Source>(from + k * sizeof(Source)));
    }
  });
  switch (chunk.check) {
    case Check::binary: return take_values<Check::binary>(x, n, out, sum);
    case Check::count: return take_values<Check::count>(x, n, out, sum);
    case Check::finite: return take_values<Check::finite>(x, n, out, sum);
    case Check::nonnegative: break;
  }
  return take_values<Check::nonnegative>(x, n, out, sum);
}

inline uint32_t as_unsigned(int32_t index) { return static_cast<uint32_t>(index); }
inline uint64_t as_unsigned(int64_t index) { return static_cast<uint64_t>(index); }

// Negative indices are the largest of all when read as unsigned.
template <class Index>
inline bool within(const Index* indices, size_t n, uint64_t n_columns) {
  constexpr uint64_t most = uint64_t{1} << (8 * sizeof(Index) - 1);
  auto largest = as_unsigned(Index{0});
  for (size_t k = 0; k < n; k++) largest = larger(largest, as_unsigned(indices[k]));
  return n == 0 || largest < smaller(n_columns, most);
}

// Prefetches a row of the table without dereferencing: the index may not have been validated yet.
inline void prefetch_entry(const void* table, uint64_t index, size_t row_bytes, size_t n_bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(table) + static_cast<uintptr_t>(index) * row_bytes;
  for (size_t byte = 0; byte < n_bytes; byte += 64) __builtin_prefetch(reinterpret_cast<const void*>(at + byte));
}

// A vector of at most eight classes, and the operations on it.
struct DoubleLanes {
  using Number = double;
  using Cell = double;
  using Vector = Doubles;
  static constexpr size_t n_lanes = lanes;
  static Vector read(const double* p) { return load(p); }
  static void write(double* p, Vector v) { store(p, v); }
  static Vector add(double x, Vector weight, Vector sum) { return multiply_add(repeat(x), weight, sum); }
};

#if defined(__F16C__) && defined(__FMA__) && defined(__AVX2__)
// Weights of 16 bits, sums of 32: fitting a large table into the cache matters more than accuracy.
struct HalfLanes {
  using Number = float;
  using Cell = uint16_t;
  using Vector = __m256;
  static constexpr size_t n_lanes = 8;
  static Vector read(const float* p) { return _mm256_loadu_ps(p); }
  static Vector read(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void write(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector add(float x, Vector weight, Vector sum) { return _mm256_fmadd_ps(_mm256_set1_ps(x), weight, sum); }
};
#endif

// out[class] += Σ value · table[index][class] over the n entries of a piece, for some neighboring panels of classes.
// Even and odd entries have separate sums, to hide the latency of additions.
template <class Lanes, size_t n_panels, bool skip_zero, class Index>
inline void add_piece(const Index* indices, const Index* end, const typename Lanes::Number* values, size_t n,
                      const typename Lanes::Cell* table, size_t pitch, typename Lanes::Number* out) {
  constexpr size_t width = n_panels * (panel_classes / Lanes::n_lanes);
  typename Lanes::Vector sum[2][width];
#pragma GCC unroll 16
  for (size_t v = 0; v < width; v++) {
    sum[0][v] = Lanes::read(out + v * Lanes::n_lanes);
    sum[1][v] = typename Lanes::Vector{};
  }
  auto add = [&](size_t k, size_t which) __attribute__((always_inline)) {
    const bool more = end - indices > static_cast<ptrdiff_t>(k + entries_ahead);
    const Index ahead = more ? indices[k + entries_ahead] : end[-1];
    prefetch_entry(table, as_unsigned(ahead), pitch * sizeof(*table), n_panels * panel_classes * sizeof(*table));
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
                           const typename Lanes::Cell* table, size_t pitch, size_t width,
                           typename Lanes::Number* out) {
  for (size_t start = 0; start < width;) {
    switch ((width - start) / panel_classes) {
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

// Prefetches the entries of a row, or the first of them: they may be far from those of the previous row. Always
// inlined: GCC considers a function that only prefetches to be without effect, and removes the call.
__attribute__((always_inline)) inline void prefetch_row(const SparseChunk& chunk, size_t row) {
  if (row >= chunk.n_rows) return;
  const size_t index_size = chunk.wide_indices ? 8 : 4, value_size = size_of(chunk.values.type);
  const size_t first = static_cast<size_t>(chunk.extents[row].start);
  const size_t last = smaller(static_cast<size_t>(chunk.extents[row].stop), first + piece);
  Bytes indices = static_cast<Bytes>(chunk.indices);
  for (size_t at = first * index_size; at < last * index_size; at += 64) __builtin_prefetch(indices + at);
  for (size_t at = first * value_size; at < last * value_size; at += 64) __builtin_prefetch(chunk.values.data + at);
}

// Adds a row's weights to `out` and its values to `sum`. False if an index or a value is not allowed.
template <class Lanes, class Index>
inline bool add_row(const SparseChunk& chunk, size_t row, const typename Lanes::Cell* table, size_t pitch, size_t width,
                    typename Lanes::Number* out, double& sum) {
  prefetch_row(chunk, row + rows_ahead);
  typename Lanes::Number values[piece];
  const Index* indices = static_cast<const Index*>(chunk.indices);
  const Index* end = indices + chunk.n_entries;
  const size_t stop = static_cast<size_t>(chunk.extents[row].stop);
  for (size_t start = static_cast<size_t>(chunk.extents[row].start); start < stop; start += piece) {
    const size_t n = smaller(piece, stop - start);
    if (!within(indices + start, n, chunk.n_columns)) return false;
    if (!convert(chunk, start, n, values, sum)) return false;
    if (chunk.skip_zero) {
      add_all_panels<Lanes, true>(indices + start, end, values, n, table, pitch, width, out);
    } else {
      add_all_panels<Lanes, false>(indices + start, end, values, n, table, pitch, width, out);
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
    if (!add_row<DoubleLanes, Index>(chunk, row, table, pitch, pitch, target, sum)) return false;
  }
  return true;
}

#if defined(__F16C__) && defined(__FMA__) && defined(__AVX2__)

// Every weight and every start is at most 0 and every value at least 0, so no term cancels another. The sum of n terms
// is then within 2⁻¹¹ (weights rounded to 11 bits) + (n + 6)·2⁻²⁴ (values, starts and sums to 24) of itself, or 2⁻²⁵
// for each unit of the values where weights are too small for 11 bits. The sums in float64, which this must agree with,
// are within (n + 3)·2⁻⁵³ of the sum of their terms' magnitudes.
int64_t certain_best(const float* sums, size_t n_classes, size_t n_terms, double total, double largest) {
  float best = sums[0], second = -__builtin_inff();
  for (size_t k = 1; k < n_classes; k++) {
    second = larger(second, smaller(best, sums[k]));
    best = larger(best, sums[k]);
  }
  const double count = static_cast<double>(n_terms);
  const double relative = (0x1p-11 + (count + 8.0) * 0x1p-24) * 1.01;
  const double absolute = 2.02 * (total * 0x1p-25 + (count + 4.0) * 0x1p-53 * largest * (total + 1.0)) + 1e-30;
  if (!(relative < 0.01) || !(best >= -1e30f) || !(total < 1e30)) return -1;  // below this bound, no sum is NaN
  if (second < -1e37f) second = -1e37f;  // avoids a difference of infinities
  const double margin = static_cast<double>(best) * (1.0 + relative) - static_cast<double>(second) * (1.0 - relative);
  if (!(margin > absolute)) return -1;
  int64_t index = 0;
  while (sums[index] != best) index++;
  return index;
}

template <class Index>
bool guess_rows(const SparseChunk& chunk, const float* start, const uint16_t* table, size_t pitch, size_t n_classes,
                double largest, float* sums, int64_t* best) {
  const size_t width = (n_classes + panel_classes - 1) / panel_classes * panel_classes;
  for (size_t row = 0; row < chunk.n_rows; row++) {
    double total = 0.0;
    for (size_t k = 0; k < width; k++) sums[k] = start[k];
    if (!add_row<HalfLanes, Index>(chunk, row, table, pitch, width, sums, total)) return false;
    const size_t n_terms = static_cast<size_t>(chunk.extents[row].stop - chunk.extents[row].start);
    best[row] = certain_best(sums, n_classes, n_terms, total, largest);
  }
  return true;
}

#endif

}  // namespace

bool sum_weights(const SparseChunk& chunk, const double* table, size_t pitch, double* out) {
  if (chunk.wide_indices) return sum_rows<int64_t>(chunk, table, pitch, out);
  return sum_rows<int32_t>(chunk, table, pitch, out);
}

#if defined(__F16C__) && defined(__FMA__) && defined(__AVX2__)
bool guess_best(const SparseChunk& chunk, const float* start, const uint16_t* table, size_t pitch, size_t n_classes,
                double largest, float* sums, int64_t* best) {
  return chunk.wide_indices ? guess_rows<int64_t>(chunk, start, table, pitch, n_classes, largest, sums, best)
                            : guess_rows<int32_t>(chunk, start, table, pitch, n_classes, largest, sums, best);
}
#endif

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
