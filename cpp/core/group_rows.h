// The rows of a block, one set per group.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "simd/kernels.h"

namespace tallybayes {

// Error-free sum of two numbers as a pair, and sums of pairs (scalar versions of the vector functions of the tiers).
struct PairSum {
  double high = 0.0, low = 0.0;

  void add(double value) { add(value, 0.0); }
  void add(double other_high, double other_low) {
    const double sum = high + other_high;
    const double virtual_other = sum - high;
    const double error = (high - (sum - virtual_other)) + (other_high - virtual_other);
    const double rest = error + (low + other_low);
    high = sum + rest;
    low = rest - (high - sum);
  }
};

// Number of rows per block: about `bytes` of them, to stay in cache, but several per group.
inline size_t choose_block_rows(size_t row_bytes, size_t n_groups, size_t bytes) {
  const size_t fitting = std::clamp<size_t>(bytes / std::max<size_t>(1, row_bytes), 16, 4096);
  return std::max(fitting, std::min<size_t>(8 * n_groups, 65536));
}

class BlockRows {
 public:
  BlockRows(const Kernels& kernels, const Groups& groups, const Weights& weights, size_t capacity)
      : kernels_(kernels), given_groups_(groups), given_weights_(weights), groups_(capacity), rows_(capacity),
        starts_(groups.n_groups + 2), weights_(weights.given() ? capacity : 0) {}

  // Sorts the rows [first, first + n). False if a group code is neither valid nor missing.
  bool prepare(size_t first, size_t n) {
    first_ = first;
    n_ = n;
    if (given_weights_.soft) return true;
    if (!kernels_.decode_groups(given_groups_, first, n, groups_.data())) return false;
    const uint32_t skip = static_cast<uint32_t>(given_groups_.n_groups);
    if (given_weights_.given()) {
      for (size_t i = 0; i < n; i++) {
        if (given_weights_.at(first + i, 0) == 0.0) groups_[i] = skip;
      }
    }
    kernels_.sort_rows(groups_.data(), n, given_groups_.n_groups, starts_.data(), rows_.data());
    return true;
  }

  // Calls f(group, rows, n, weights or nullptr) for every nonempty group in ascending order; f returns false to stop.
  template <class F>
  bool each(F f) {
    for (size_t group = 0; group < given_groups_.n_groups; group++) {
      const Members members = members_of(group);
      if (members.n && !f(group, members.rows, members.n, members.weights)) return false;
    }
    return true;
  }

  struct Members {
    const uint32_t* rows;
    size_t n;
    const double* weights;
  };

  Members members_of(size_t group) {
    if (given_weights_.soft) {
      size_t n = 0;
      for (size_t i = 0; i < n_; i++) {
        const double weight = given_weights_.at(first_ + i, group);
        rows_[n] = static_cast<uint32_t>(i);
        weights_[n] = weight;
        n += weight != 0.0;
      }
      return {rows_.data(), n, weights_.data()};
    }
    const uint32_t* rows = rows_.data() + starts_[group];
    const size_t n = starts_[group + 1] - starts_[group];
    if (!given_weights_.given()) return {rows, n, nullptr};
    for (size_t k = 0; k < n; k++) weights_[k] = given_weights_.at(first_ + rows[k], 0);
    return {rows, n, weights_.data()};
  }

 private:
  const Kernels& kernels_;
  const Groups& given_groups_;
  const Weights& given_weights_;
  size_t first_ = 0, n_ = 0;
  std::vector<uint32_t> groups_, rows_, starts_;
  std::vector<double> weights_;
};

inline PairSum total_weight(const double* weights, size_t n) {
  PairSum sum;
  if (weights) {
    for (size_t k = 0; k < n; k++) sum.add(weights[k]);
  } else {
    sum.high = static_cast<double>(n);
  }
  return sum;
}

}  // namespace tallybayes
