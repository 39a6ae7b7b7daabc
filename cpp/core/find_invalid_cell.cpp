#include "core/find_invalid_cell.h"

#include <algorithm>
#include <cmath>

namespace tallybayes {

namespace {

template <class T>
T read(Bytes p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

bool bad_code(uint64_t code, Type type, uint64_t size) {
  return code >= code_limit(type, size) && code != missing_code(type);
}

// The largest weight of a row in any group; 0 for rows that are skipped.
double row_weight(const Input& input, size_t row) {
  if (input.groups.given()) {
    const Column& codes = input.groups.codes;
    if (code_at(codes, row) >= code_limit(codes.type, input.groups.n_groups)) return 0.0;
  }
  if (!input.weights.given()) return 1.0;
  double largest = 0.0;
  for (size_t g = 0; g < (input.weights.soft ? input.groups.n_groups : 1); g++) {
    const double weight = input.weights.at(row, g);
    if (weight != 0.0) largest = std::max(largest, weight);
  }
  return largest;
}

bool allowed(double x, Kind kind) {
  if (kind == Kind::multinomial) return x >= 0.0 && std::isfinite(x);
  if (std::isnan(x)) return true;
  if (kind == Kind::binary) return x == 0.0 || x == 1.0;
  return x >= 0.0 && std::isfinite(x) && x == std::floor(x);
}

template <class IsBad>
Problem search(const Input& input, const Table& table, IsBad is_bad) {
  const Problem group = find_bad_group(input, table.n_rows);
  if (group.what != Problem::What::nothing) return group;
  for (size_t row = 0; row < table.n_rows; row++) {
    const double weight = row_weight(input, row);
    if (weight == 0.0) continue;
    for (size_t j = 0; j < table.n_columns; j++) {
      if (is_bad(table.column(j), row, j, weight)) return {Problem::What::cell, row, j};
    }
  }
  return {};
}

}  // namespace

Problem find_bad_group(const Input& input, size_t n_rows) {
  if (!input.groups.given()) return {};
  const Column& codes = input.groups.codes;
  for (size_t row = 0; row < n_rows; row++) {
    const uint64_t code = code_at(codes, row);
    if (!bad_code(code, codes.type, input.groups.n_groups)) continue;
    Problem problem{Problem::What::group, row, 0, static_cast<int64_t>(code)};
    if (is_signed(codes.type)) problem.found = static_cast<int64_t>(cell_at(codes, row));
    if (codes.type == Type::int64) problem.found = static_cast<int64_t>(code);
    problem.huge = codes.type == Type::uint64;
    return problem;
  }
  return {};
}

Problem find_bad_code(const Input& input, const Table& table, const int64_t* sizes) {
  return search(input, table, [&](const Column& column, size_t row, size_t j, double) {
    return bad_code(code_at(column, row), column.type, static_cast<uint64_t>(sizes[j]));
  });
}

Problem find_bad_cell(const Input& input, const Table& table, Kind kind) {
  return search(input, table, [&](const Column& column, size_t row, size_t, double) {
    return !allowed(cell_at(column, row), kind);
  });
}

Problem find_bad_moment(const Input& input, const Table& table, const double* anchor, bool missing_allowed) {
  return search(input, table, [&](const Column& column, size_t row, size_t j, double weight) {
    const double x = cell_at(column, row), v = x - anchor[j];
    if (std::isnan(x)) return !missing_allowed;
    return !(weight * (v * v) <= 1e300);
  });
}

namespace {

int64_t entry(const Column& column, size_t i) {
  return column.type == Type::int32 ? int64_t{read<int32_t>(column.at(i))} : read<int64_t>(column.at(i));
}

}  // namespace

Problem find_bad_extent(const Sparse& matrix) {
  for (size_t row = 0; row < matrix.n_rows; row++) {
    const int64_t start = entry(matrix.indptr, row), stop = entry(matrix.indptr, row + 1);
    if (start < 0 || stop < start || stop > static_cast<int64_t>(matrix.n_entries)) {
      return {Problem::What::extent, row, 0, start, stop};
    }
  }
  return {};
}

Problem find_bad_index(const Sparse& matrix) {
  const Problem extent = find_bad_extent(matrix);
  if (extent.what != Problem::What::nothing) return extent;
  for (size_t row = 0; row < matrix.n_rows; row++) {
    const size_t stop = static_cast<size_t>(entry(matrix.indptr, row + 1));
    for (size_t k = static_cast<size_t>(entry(matrix.indptr, row)); k < stop; k++) {
      const int64_t index = entry(matrix.indices, k);
      if (static_cast<uint64_t>(index) >= matrix.n_columns) return {Problem::What::index, row, 0, index};
    }
  }
  return {};
}

Problem find_bad_entry(const Input& input, const Sparse& matrix, Kind kind) {
  const Problem group = find_bad_group(input, matrix.n_rows);
  if (group.what != Problem::What::nothing) return group;
  const Problem extent = find_bad_extent(matrix);
  if (extent.what != Problem::What::nothing) return extent;
  Problem cell;
  for (size_t row = 0; row < matrix.n_rows; row++) {
    if (row_weight(input, row) == 0.0) continue;
    const size_t stop = static_cast<size_t>(entry(matrix.indptr, row + 1));
    for (size_t k = static_cast<size_t>(entry(matrix.indptr, row)); k < stop; k++) {
      const int64_t index = entry(matrix.indices, k);
      if (static_cast<uint64_t>(index) >= matrix.n_columns) return {Problem::What::index, row, 0, index};
      if (cell.what == Problem::What::cell && cell.row < row) continue;  // only an invalid index can still come first
      if (allowed(cell_at(matrix.data, k), kind)) continue;
      const size_t column = static_cast<size_t>(index);
      if (cell.what == Problem::What::nothing || column < cell.column) cell = {Problem::What::cell, row, column};
    }
  }
  return cell;
}

}  // namespace tallybayes
