// The scoring functions of one tier, and shared helpers.
#pragma once

#include "score/score_kernels.h"
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

extern const ScoreKernels score_kernels;

void load_columns(const Table&, size_t, size_t, size_t, size_t, double*, size_t);
Outcome examine(const double*, size_t, size_t, size_t, Check);
void add_norms(const DenseWork&);
void add_linear(const DenseWork&);
void add_normal(const DenseWork&);
void add_student(const DenseWork&);
void add_student_by_column(const DenseWork&);
void add_left_out(const DenseWork&);
void log_products(double*, const double*, size_t);
bool load_bits(const Table&, size_t, size_t, uint8_t*, size_t, uint8_t*);
void sum_bits(const uint8_t*, size_t, size_t, size_t, const double*, size_t, double*);
bool load_entries(const Table&, size_t, size_t, const CodeColumns&, uint32_t*);
void sum_entries(const uint32_t*, size_t, size_t, const double*, size_t, double*);
void score_pairs(const uint32_t*, size_t, const PairTable&, double*, double*);
void sum_tempered(const TemperedRows&, double, double, double*);
bool sum_weights(const SparseChunk&, const double*, size_t, double*);
bool guess_best(const SparseChunk&, const float*, const uint16_t*, size_t, size_t, double, float*, int64_t*);
void add_turned(const double*, size_t, size_t, size_t, double*, size_t);
void best_classes(const double*, size_t, size_t, size_t, int64_t*);
void turn_scores(const double*, size_t, size_t, size_t, double*);
void normalize(double*, size_t, size_t, size_t, const double*, double*);
void widen_ranges(Type, Bytes, ptrdiff_t, size_t, size_t, void*, void*);

template <class T>
struct ScoreTag {
  using type = T;
};

template <class T>
static inline T read_as(Bytes p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

template <class F>
static inline void with_cell_type(Type type, F f) {
  switch (type) {
    case Type::boolean:
    case Type::uint8: return f(ScoreTag<uint8_t>());
    case Type::int8: return f(ScoreTag<int8_t>());
    case Type::int16: return f(ScoreTag<int16_t>());
    case Type::uint16: return f(ScoreTag<uint16_t>());
    case Type::int32: return f(ScoreTag<int32_t>());
    case Type::uint32: return f(ScoreTag<uint32_t>());
    case Type::int64: return f(ScoreTag<int64_t>());
    case Type::uint64: return f(ScoreTag<uint64_t>());
    case Type::float32: return f(ScoreTag<float>());
    case Type::float64: return f(ScoreTag<double>());
  }
}

// Which values a check allows; NaN never is.
constexpr double largest_double = 1.7976931348623157e308;
constexpr double first_without_fraction = 4503599627370496.0;  // 2⁵²: every double from here on is an integer

template <Check check>
static inline Mask accepted(Doubles x) {
  if (check == Check::binary) return (x == 0.0) | (x == 1.0);
  if (check == Check::finite) return (x >= -largest_double) & (x <= largest_double);
  const Mask range = (x >= 0.0) & (x <= largest_double);
  if (check == Check::nonnegative) return range;
  return range & (((x + first_without_fraction) - first_without_fraction == x) | (x >= first_without_fraction));
}

// Called for every column of every strip of rows: prefetches a portion of the next cells.
static inline void prefetch_share(const Ahead& ahead, size_t row, size_t n_rows, size_t column) {
  if (ahead.row_bytes) {
    if (column >= n_rows || row + column >= ahead.n_rows) return;
    Bytes at = ahead.cells + static_cast<ptrdiff_t>(row + column) * ahead.row_stride;
    for (size_t byte = 0; byte < ahead.row_bytes; byte += 64) __builtin_prefetch(at + byte);
  } else if (row < ahead.n_rows) {
    Bytes at = ahead.cells + static_cast<ptrdiff_t>(column) * ahead.column_stride +
               static_cast<ptrdiff_t>(row) * ahead.row_stride;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
  }
}

template <size_t step, size_t... lane>
static inline void swap_halves(Doubles* v, LaneList<lane...>) {
  for (size_t i = 0; i < lanes; i++) {
    if (i & step) continue;
    const Doubles a = v[i], b = v[i + step];
    v[i] = shuffle<(lane & step ? lanes + lane - step : lane)...>(a, b);
    v[i + step] = shuffle<(lane & step ? lanes + lane : lane + step)...>(a, b);
  }
}

// Transposes a square of `lanes` vectors.
static inline void turn_square(Doubles* v) {
  swap_halves<1>(v, EveryLane());
#if defined(__AVX2__)
  swap_halves<2>(v, EveryLane());
#endif
#if defined(__AVX512F__)
  swap_halves<4>(v, EveryLane());
#endif
}

// Calls f with the number of classes of the group as a compile-time constant.
template <size_t n>
struct Count {
  static constexpr size_t value = n;
};
template <class F>
static inline void with_group(size_t n_classes, F f) {
  switch (n_classes) {
    case 1: return f(Count<1>());
    case 2: return f(Count<2>());
    case 3: return f(Count<3>());
    case 4: return f(Count<4>());
    case 5: return f(Count<5>());
    default: return f(Count<most_group_classes>());
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
