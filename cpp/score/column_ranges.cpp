// The smallest and largest value of integer columns, limited by memory bandwidth.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"
#include "score/score.h"

namespace tallybayes {

namespace {

constexpr size_t cells_in_part = size_t{1} << 21;
constexpr size_t run_bytes = 2048;  // short contiguous rows are processed in runs of about this length

template <class F>
void with_integer(Type type, F f) {
  switch (type) {
    case Type::int8: return f(int8_t{});
    case Type::int16: return f(int16_t{});
    case Type::uint16: return f(uint16_t{});
    case Type::int32: return f(int32_t{});
    case Type::uint32: return f(uint32_t{});
    case Type::int64: return f(int64_t{});
    case Type::uint64: return f(uint64_t{});
    default: return f(uint8_t{});
  }
}

struct Ranges {
  std::vector<int64_t> low, high;
  bool fits = true;

  explicit Ranges(size_t n)
      : low(n, std::numeric_limits<int64_t>::max()), high(n, std::numeric_limits<int64_t>::min()) {}

  template <class T>
  void widen(size_t column, T least, T most) {
    if (sizeof(T) == 8 && !std::numeric_limits<T>::is_signed &&
        static_cast<uint64_t>(most) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fits = false;
      return;
    }
    low[column] = std::min(low[column], static_cast<int64_t>(least));
    high[column] = std::max(high[column], static_cast<int64_t>(most));
  }
  void merge(const Ranges& other) {
    for (size_t j = 0; j < low.size(); j++) {
      low[j] = std::min(low[j], other.low[j]);
      high[j] = std::max(high[j], other.high[j]);
    }
    fits = fits && other.fits;
  }
};

// Cell k of a run belongs to column first_column + k modulo n_columns.
template <class T>
void widen_by_runs(const ScoreKernels& kernels, Type type, Bytes cells, ptrdiff_t stride, size_t n_runs, size_t n,
                   size_t n_columns, size_t first_column, Ranges& ranges) {
  if (n_runs == 0) return;
  std::vector<T> low(n), high(n);
  std::memcpy(low.data(), cells, n * sizeof(T));
  high = low;
  kernels.widen_ranges(type, cells + stride, stride, n_runs - 1, n, low.data(), high.data());
  for (size_t start = 0; start < n; start += n_columns) {
    for (size_t j = 0; j < n_columns; j++) ranges.widen(first_column + j, low[start + j], high[start + j]);
  }
}

template <class T>
void widen_rows(const ScoreKernels& kernels, const Table& table, size_t first, size_t last, Ranges& ranges) {
  const size_t d = table.n_columns;
  const bool gapless = table.row_stride == static_cast<ptrdiff_t>(d * sizeof(T));
  const size_t together = gapless ? std::max<size_t>(1, run_bytes / (d * sizeof(T))) : 1;
  const size_t n_runs = (last - first) / together;
  const ptrdiff_t stride = table.row_stride * static_cast<ptrdiff_t>(together);
  widen_by_runs<T>(kernels, table.type, table.row(first), stride, n_runs, together * d, d, 0, ranges);
  const size_t rest = first + n_runs * together;
  widen_by_runs<T>(kernels, table.type, table.row(rest), table.row_stride, last - rest, d, d, 0, ranges);
}

template <class T>
void widen_column(const ScoreKernels& kernels, const Column& column, size_t j, size_t first, size_t last,
                  Ranges& ranges) {
  if (column.contiguous()) {
    const size_t n = run_bytes / sizeof(T), n_runs = (last - first) / n;
    const ptrdiff_t stride = static_cast<ptrdiff_t>(run_bytes);
    widen_by_runs<T>(kernels, column.type, column.at(first), stride, n_runs, n, 1, j, ranges);
    first += n_runs * n;
  }
  widen_by_runs<T>(kernels, column.type, column.at(first), column.stride, last - first, 1, 1, j, ranges);
}

}  // namespace

bool column_ranges(const ScoreKernels& kernels, const Table& table, size_t threads, std::vector<int64_t>& low,
                   std::vector<int64_t>& high) {
  const size_t d = table.n_columns;
  low.assign(d, 0);
  high.assign(d, -1);
  if (table.n_rows == 0 || d == 0) return true;
  // By rows if they are contiguous, otherwise column by column; runs of single cells are avoided if possible.
  const bool by_rows = table.row_major() && (d > 1 || table.row_stride == static_cast<ptrdiff_t>(size_of(table.type)));
  const Grid grid(table.n_rows, std::max<size_t>(1, cells_in_part / d));
  Ranges total(d);
  auto process = [&](Ranges& ranges, size_t part, Order&) {
    if (by_rows) {
      with_integer(table.type, [&](auto zero) {
        widen_rows<decltype(zero)>(kernels, table, grid.first(part), grid.last(part), ranges);
      });
      return true;
    }
    for (size_t j = 0; j < d; j++) {
      const Column column = table.column(j);
      with_integer(column.type, [&](auto zero) {
        widen_column<decltype(zero)>(kernels, column, j, grid.first(part), grid.last(part), ranges);
      });
    }
    return true;
  };
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(d) / 8.0;
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, cells), 1, [&] { return Ranges(d); }, process,
            [&](Ranges& ranges) { total.merge(ranges); });
  low = std::move(total.low);
  high = std::move(total.high);
  return total.fits;
}

}  // namespace tallybayes
