// Where a column is cut so that the classes are told by its bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tallybayes {

// The values before which to cut, rising, from how often every class has each value: (classes, values), whole numbers
// that sum to less than the length of `n_log_n`, n log n of every n.
std::vector<size_t> best_cuts(const int32_t* table, size_t n_classes, size_t n_values, const double* n_log_n);

}  // namespace tallybayes
