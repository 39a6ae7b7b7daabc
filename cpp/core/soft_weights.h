// Blocks of consecutive rows with soft weights: both are read in place if their layout allows, otherwise copied.
#pragma once

#include <algorithm>

#include "core/driver_types.h"

namespace tallybayes {

inline size_t whole_lines(size_t n_doubles) { return (n_doubles + 7) / 8 * 8; }

class SoftReader {
 public:
  // `width`: number of columns, padded with zeros to a vector if there are few.
  SoftReader(const Input& input, const Table& table, size_t width, size_t capacity)
      : input_(input), table_(table), width_(width),
        in_place_(table.row_major() && table.aligned() && table.type == Type::float64 && width == table.n_columns),
        weights_in_place_(side_by_side(input.weights)), n_groups_(input.groups.n_groups),
        scratch_(in_place_ ? 0 : capacity * width), weights_(weights_in_place_ ? 0 : capacity * n_groups_) {}

  SoftRows read(size_t first, size_t n) {
    SoftRows rows{};
    rows.n_rows = n;
    if (in_place_) {
      rows.base = table_.row(first);
      rows.row_stride = table_.row_stride;
    } else {
      input_.kernels.load_doubles(table_, first, n, scratch_.data(), width_);
      rows.base = reinterpret_cast<Bytes>(scratch_.data());
      rows.row_stride = static_cast<ptrdiff_t>(width_ * sizeof(double));
    }
    const Weights& given = input_.weights;
    if (weights_in_place_) {
      rows.weights = reinterpret_cast<const double*>(given.data + static_cast<ptrdiff_t>(first) * given.row_stride);
      rows.weight_pitch = static_cast<size_t>(given.row_stride) / sizeof(double);
    } else {
      for (size_t g = 0; g < n_groups_; g++) {
        for (size_t i = 0; i < n; i++) weights_[i * n_groups_ + g] = given.at(first + i, g);
      }
      rows.weights = weights_.data();
      rows.weight_pitch = n_groups_;
    }
    return rows;
  }

  // Rows [start, start + n) of the loaded ones, and the position of the next rows.
  SoftRows part(const SoftRows& rows, size_t start, size_t n) const {
    SoftRows some = rows;
    some.base += static_cast<ptrdiff_t>(start) * rows.row_stride;
    some.weights += start * rows.weight_pitch;
    some.n_rows = std::min(n, rows.n_rows - start);
    some.lookahead = in_place_ ? static_cast<ptrdiff_t>(n) * rows.row_stride : 0;
    return some;
  }

 private:
  static bool side_by_side(const Weights& weights) {
    constexpr ptrdiff_t size = sizeof(double);
    const auto address = reinterpret_cast<uintptr_t>(weights.data);
    return weights.group_stride == size && weights.row_stride > 0 && weights.row_stride % size == 0 &&
           address % sizeof(double) == 0;
  }

  const Input& input_;
  const Table& table_;
  size_t width_;
  bool in_place_, weights_in_place_;
  size_t n_groups_;
  Vector scratch_, weights_;
};

}  // namespace tallybayes
