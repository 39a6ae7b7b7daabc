// Supervised discretization.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tallybayes {

// The indices of the values at which bins start, ascending, from the counts of every value in every class, (classes,
// values). The counts are integers whose sum is less than the length of `n_log_n`, n log n of every n.
std::vector<size_t> best_cuts(const int32_t* table, size_t n_classes, size_t n_values, const double* n_log_n);

}  // namespace tallybayes
