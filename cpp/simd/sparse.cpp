// Sums over the stored entries of CSR rows.
#include "simd/cells.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Entries are processed in pieces that fit into a small buffer, where values of other types are converted to doubles.
constexpr size_t piece = 256;
// Random access to the sums defeats the prefetcher; the entries of rows at this distance are prefetched explicitly.
constexpr size_t rows_ahead = 3;

template <class Source>
inline void convert(Bytes from, size_t n, double* out) {
  for (size_t k = 0; k < n; k++) {
    Source value;
    __builtin_memcpy(&value, from + k * sizeof(Source), sizeof(Source));
    out[k] = static_cast<double>(value);
  }
}

// Not inlined: it is called once per piece, and thirty copies took most of the compile time of this file.
__attribute__((noinline)) const double* convert_piece(const Column& values, size_t start, size_t n, double* buffer) {
  Bytes from = values.data + start * size_of(values.type);
  switch (values.type) {
    case Type::float64: break;
    case Type::float32: convert<float>(from, n, buffer); break;
    case Type::boolean:
    case Type::uint8: convert<uint8_t>(from, n, buffer); break;
    case Type::int8: convert<int8_t>(from, n, buffer); break;
    case Type::int16: convert<int16_t>(from, n, buffer); break;
    case Type::uint16: convert<uint16_t>(from, n, buffer); break;
    case Type::int32: convert<int32_t>(from, n, buffer); break;
    case Type::uint32: convert<uint32_t>(from, n, buffer); break;
    case Type::int64: convert<int64_t>(from, n, buffer); break;
    case Type::uint64: convert<uint64_t>(from, n, buffer); break;
  }
  return buffer;
}

inline const double* as_doubles(const Column& values, size_t start, size_t n, double* buffer) {
  if (values.type != Type::float64) return convert_piece(values, start, n, buffer);
  return reinterpret_cast<const double*>(values.data) + start;
}

struct Survey {
  bool allowed;  // all values are allowed
  bool trivial;  // all values are 0 or 1: no logarithm needed
  double sum;
};

template <Kind kind>
inline Survey survey(const double* x, size_t n) {
  Mask good = ~Mask{}, trivial = ~Mask{};
  Doubles sums[vectors_of_eight] = {};
  each_eight(x, n, [&](size_t k, Doubles v) {
    good &= allowed<kind>(v);
    trivial &= (v == 0.0) | (v == 1.0);
    sums[k] += v;
  });
  return {all(good), all(trivial), spread_sum(sums)[0]};
}

inline double sum_log_factorials(const double* x, size_t n) {
  Doubles sums[vectors_of_eight] = {};
  each_eight(x, n, [&](size_t k, Doubles v) { sums[k] += log_factorials(v); });
  return spread_sum(sums)[0];
}

// Always inlined: GCC considers a function that only prefetches to be without effect, and removes the call.
__attribute__((always_inline)) inline void prefetch_row(const SparseRows& rows, size_t i) {
  if (i >= rows.n_rows) return;
  const Extent extent = rows.extents[i];
  const size_t index_size = rows.wide_indices ? 8 : 4, value_size = size_of(rows.values.type);
  Bytes indices = static_cast<Bytes>(rows.indices);
  const size_t first = static_cast<size_t>(extent.start), last = static_cast<size_t>(extent.stop);
  for (size_t at = first * index_size; at < last * index_size; at += 64) __builtin_prefetch(indices + at, 0, 2);
  for (size_t at = first * value_size; at < last * value_size; at += 64) __builtin_prefetch(rows.values.data + at, 0, 2);
}

// Removes NaN from the values and counts it as missing. The values are copied to the buffer unless they are there.
template <Kind kind, class Absent>
inline Outcome set_missing_aside(const double*& x, size_t n, double* buffer, bool may_book, Absent absent) {
  if (kind == Kind::multinomial) return Outcome::bad;
  if (!may_book) return Outcome::missing;
  if (x != buffer) __builtin_memcpy(buffer, x, n * sizeof(double));
  for (size_t k = 0; k < n; k++) {
    if (buffer[k] == buffer[k]) continue;
    buffer[k] = 0.0;
    if (!absent(k)) return Outcome::bad;
  }
  x = buffer;
  return survey<kind>(x, n).allowed ? Outcome::clean : Outcome::bad;
}

template <Kind kind, class Index>
Outcome sum_rows(const SparseRows& rows, const SparseSums& out) {
  double buffer[piece];
  const Index* indices = static_cast<const Index*>(rows.indices);
  for (size_t i = 0; i < rows.n_rows; i++) {
    prefetch_row(rows, i + rows_ahead);
    const double weight = rows.weights ? rows.weights[i] : 1.0;
    double row_sum = 0.0, inner = 0.0;
    const size_t stop = static_cast<size_t>(rows.extents[i].stop);
    for (size_t start = static_cast<size_t>(rows.extents[i].start); start < stop; start += piece) {
      const size_t n = smaller(piece, stop - start);
      const Index* at = indices + start;
      const double* x = as_doubles(rows.values, start, n, buffer);
      Survey found = survey<kind>(x, n);
      if (!found.allowed) {
        const Outcome outcome = set_missing_aside<kind>(x, n, buffer, out.absent != nullptr, [&](size_t k) {
          if (static_cast<uint64_t>(at[k]) >= rows.n_columns) return false;
          out.absent[at[k]] += weight;
          return true;
        });
        if (outcome != Outcome::clean) return outcome;
        found.trivial = false;
      }
      for (size_t k = 0; k < n; k++) {
        const uint64_t column = static_cast<uint64_t>(at[k]);
        if (column >= rows.n_columns) return Outcome::bad;
        out.total[column] += weight * x[k];
      }
      if (kind == Kind::multinomial) {
        row_sum += found.sum;
        if (!found.trivial) inner += sum_log_factorials(x, n);
      }
      if (kind == Kind::poisson && !found.trivial) {
        for (size_t k = 0; k < n; k++) out.log_base[at[k]] -= weight * log_factorial(x[k]);
      }
    }
    if (kind == Kind::multinomial) out.log_base[0] += weight * (log_factorial(row_sum) - inner);
  }
  return Outcome::clean;
}

// The log base measure of a single row; NaN if it is undefined.
double row_base(const SparseRows& rows, const Extent& extent) {
  double buffer[piece];
  double row_sum = 0.0, inner = 0.0;
  const size_t stop = static_cast<size_t>(extent.stop);
  for (size_t start = static_cast<size_t>(extent.start); start < stop; start += piece) {
    const size_t n = smaller(piece, stop - start);
    const double* x = as_doubles(rows.values, start, n, buffer);
    const Survey found = survey<Kind::multinomial>(x, n);
    if (!found.allowed) return __builtin_nan("");
    row_sum += found.sum;
    if (!found.trivial) inner += sum_log_factorials(x, n);
  }
  return (rows.kind == Kind::multinomial ? log_factorial(row_sum) : 0.0) - inner;
}

// sums[g] += weights[g] · x for `pitch` contiguous groups.
template <size_t pitch>
__attribute__((always_inline)) inline void add_all(double* sums, const double* weights, double x) {
  if (pitch % lanes) {
    for (size_t g = 0; g < pitch; g++) sums[g] = multiply_add(weights[g], x, sums[g]);
    return;
  }
  for (size_t g = 0; g < pitch; g += lanes) {
    store(sums + g, multiply_add(load(weights + g), repeat(x), load(sums + g)));
  }
}

template <Kind kind, class Index, size_t pitch>
Outcome sum_soft_rows(const SparseRows& rows, double* totals, double* log_base, double* absent) {
  double buffer[piece];
  const Index* indices = static_cast<const Index*>(rows.indices);
  for (size_t i = 0; i < rows.n_rows; i++) {
    prefetch_row(rows, i + rows_ahead);
    double weights[pitch];  // a local copy, which no sum can alias: it stays in registers
    __builtin_memcpy(weights, rows.weights + i * pitch, sizeof(weights));
    double row_sum = 0.0, inner = 0.0;
    const size_t stop = static_cast<size_t>(rows.extents[i].stop);
    for (size_t start = static_cast<size_t>(rows.extents[i].start); start < stop; start += piece) {
      const size_t n = smaller(piece, stop - start);
      const Index* at = indices + start;
      const double* x = as_doubles(rows.values, start, n, buffer);
      Survey found = survey<kind>(x, n);
      if (!found.allowed) {
        const Outcome outcome = set_missing_aside<kind>(x, n, buffer, absent != nullptr, [&](size_t k) {
          if (static_cast<uint64_t>(at[k]) >= rows.n_columns) return false;
          add_all<pitch>(absent + static_cast<uint64_t>(at[k]) * pitch, weights, 1.0);
          return true;
        });
        if (outcome != Outcome::clean) return outcome;
        found.trivial = false;
      }
      for (size_t k = 0; k < n; k++) {
        const uint64_t column = static_cast<uint64_t>(at[k]);
        if (column >= rows.n_columns) return Outcome::bad;
        add_all<pitch>(totals + column * pitch, weights, x[k]);
      }
      if (kind == Kind::multinomial) {
        row_sum += found.sum;
        if (!found.trivial) inner += sum_log_factorials(x, n);
      }
      if (kind == Kind::poisson && !found.trivial) {
        // Only counts above 1 have a nonzero logarithm. Gathered first, since the branch is unpredictable.
        uint64_t columns[piece];
        double counts[piece];
        size_t n_counts = 0;
        for (size_t k = 0; k < n; k++) {
          columns[n_counts] = static_cast<uint64_t>(at[k]);
          counts[n_counts] = x[k];
          n_counts += x[k] > 1.0;
        }
        for (size_t k = 0; k < n_counts; k++) {
          add_all<pitch>(log_base + columns[k] * pitch, weights, -log_factorial(counts[k]));
        }
      }
    }
    if (kind == Kind::multinomial) add_all<pitch>(log_base, weights, log_factorial(row_sum) - inner);
  }
  return Outcome::clean;
}

template <Kind kind, class Index>
Outcome sum_soft_kind(const SparseRows& rows, size_t pitch, double* totals, double* log_base, double* absent) {
  switch (pitch) {
    case 1: return sum_soft_rows<kind, Index, 1>(rows, totals, log_base, absent);
    case 2: return sum_soft_rows<kind, Index, 2>(rows, totals, log_base, absent);
    case 4: return sum_soft_rows<kind, Index, 4>(rows, totals, log_base, absent);
    default: return sum_soft_rows<kind, Index, 8>(rows, totals, log_base, absent);
  }
}

template <class Index>
Outcome of_kind(const SparseRows& rows, const SparseSums& out) {
  switch (rows.kind) {
    case Kind::binary: return sum_rows<Kind::binary, Index>(rows, out);
    case Kind::poisson: return sum_rows<Kind::poisson, Index>(rows, out);
    default: return sum_rows<Kind::multinomial, Index>(rows, out);
  }
}

template <class Index>
Outcome of_soft_kind(const SparseRows& rows, size_t pitch, double* totals, double* log_base, double* absent) {
  switch (rows.kind) {
    case Kind::binary: return sum_soft_kind<Kind::binary, Index>(rows, pitch, totals, log_base, absent);
    case Kind::poisson: return sum_soft_kind<Kind::poisson, Index>(rows, pitch, totals, log_base, absent);
    default: return sum_soft_kind<Kind::multinomial, Index>(rows, pitch, totals, log_base, absent);
  }
}

}  // namespace

Outcome sum_sparse(const SparseRows& rows, const SparseSums& out) {
  return rows.wide_indices ? of_kind<int64_t>(rows, out) : of_kind<int32_t>(rows, out);
}

Outcome sum_sparse_soft(const SparseRows& rows, size_t pitch, double* totals, double* log_base, double* absent) {
  return rows.wide_indices ? of_soft_kind<int64_t>(rows, pitch, totals, log_base, absent)
                           : of_soft_kind<int32_t>(rows, pitch, totals, log_base, absent);
}

void log_bases(const SparseRows& rows, double* out) {
  for (size_t i = 0; i < rows.n_rows; i++) out[i] = row_base(rows, rows.extents[i]);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
