// Order of the indices within CSR rows: sorted, without duplicates, or with duplicates.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t rows_in_part = 4096;

// Whether n > 0 indices are ascending and nonnegative. The sign bit of next − this − 1 is set if they are not
// ascending; signs are collected without branches, several at a time in baseline instructions.
template <class Index>
bool rises(const Index* at, size_t n) {
  using Unsigned = std::make_unsigned_t<Index>;
  Unsigned signs = static_cast<Unsigned>(at[n - 1]);
  for (size_t k = 0; k + 1 < n; k++) {
    const Unsigned here = static_cast<Unsigned>(at[k]), next = static_cast<Unsigned>(at[k + 1]);
    signs |= here | (next - here - 1);
  }
  return static_cast<Index>(signs) >= 0;
}

// Marks the columns of a row and removes the marks again. False if an index occurs twice.
template <class Index>
bool distinct(const Index* at, size_t n, std::vector<uint64_t>& marks) {
  bool repeated = false;
  for (size_t k = 0; k < n; k++) {
    const uint64_t column = static_cast<uint64_t>(at[k]), bit = uint64_t{1} << (column % 64);
    repeated |= (marks[column / 64] & bit) != 0;
    marks[column / 64] |= bit;
  }
  for (size_t k = 0; k < n; k++) marks[static_cast<uint64_t>(at[k]) / 64] = 0;
  return !repeated;
}

template <class Pointer, class Index>
bool find_order(const Sparse& matrix, size_t threads, RowOrder& found) {
  const auto* indptr = reinterpret_cast<const Pointer*>(matrix.indptr.data);
  const auto* indices = reinterpret_cast<const Index*>(matrix.indices.data);
  const Grid grid(matrix.n_rows, rows_in_part);
  std::atomic<RowOrder> worst{RowOrder::rising};
  auto process = [&](std::vector<uint64_t>& marks, size_t part, Order&) {
    for (size_t row = grid.first(part); row < grid.last(part); row++) {
      const int64_t start = indptr[row], stop = indptr[row + 1];
      if (start < 0 || stop < start || stop > static_cast<int64_t>(matrix.n_entries)) return false;
      if (start == stop) continue;
      const Index* at = indices + start;
      const size_t n = static_cast<size_t>(stop - start);
      const bool rising = rises(at, n);
      const Index low = rising ? at[0] : *std::min_element(at, at + n);
      const Index high = rising ? at[n - 1] : *std::max_element(at, at + n);
      if (low < 0 || static_cast<uint64_t>(high) >= matrix.n_columns) return false;
      if (rising) continue;
      if (marks.empty()) marks.assign(matrix.n_columns / 64 + 1, 0);
      if (!distinct(at, n, marks)) {
        worst = RowOrder::repeated;
      } else if (worst == RowOrder::rising) {  // another thread may find a worse order in between, and keeps it
        RowOrder before = RowOrder::rising;
        worst.compare_exchange_strong(before, RowOrder::distinct);
      }
    }
    return true;
  };
  const size_t used = choose_threads(threads, grid.n_parts, static_cast<double>(matrix.n_entries) / 4.0);
  const bool good = run_parts(grid.n_parts, used, 0, [] { return std::vector<uint64_t>(); }, process,
                              [](std::vector<uint64_t>&) {});
  found = worst;
  return good;
}

}  // namespace

bool row_order(const Sparse& matrix, size_t threads, RowOrder& found) {
  const bool wide = matrix.indices.type == Type::int64;
  if (matrix.indptr.type == Type::int64) {
    return wide ? find_order<int64_t, int64_t>(matrix, threads, found)
                : find_order<int64_t, int32_t>(matrix, threads, found);
  }
  return wide ? find_order<int32_t, int64_t>(matrix, threads, found)
              : find_order<int32_t, int32_t>(matrix, threads, found);
}

}  // namespace tallybayes
