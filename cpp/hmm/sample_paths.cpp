#include "hmm/sample_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"

namespace tallybayes {

bool ChainDrawer::draw(const double* state, size_t step, bool last, bool logs) {
  const ChainTable& table = last ? model_.end : model_.turned;
  const double *after = (logs ? table.logs : table.plain).data(), *uniform = draws_.uniform + step * draws_.n;
  int64_t* here = draws_.paths + step * draws_.n;
  const int64_t* next = here + draws_.n;  // not read after the last step
  upto_.resize(model_.input.n_states);
  for (size_t path = 0; path < draws_.n; path++) {
    const size_t row = last ? 0 : static_cast<size_t>(next[path]);
    const double total = add_up(state, after + row * model_.pitch, logs);
    if (!(total > 0.0)) return false;
    double cut = uniform[path] * total;
    if (!(cut < total)) cut = std::nextafter(total, 0.0);  // below the total despite rounding
    size_t k = 0;
    while (k + 1 < upto_.size() && !(upto_[k] > cut)) k++;
    here[path] = static_cast<int64_t>(k);
  }
  return true;
}

void ChainDrawer::draw_none(size_t first_step, size_t n_steps) {
  std::fill_n(draws_.paths + first_step * draws_.n, n_steps * draws_.n, int64_t{-1});
}

// The cumulative probabilities of the states; from logarithms after subtracting the largest.
double ChainDrawer::add_up(const double* state, const double* after, bool logs) {
  const size_t n = upto_.size();
  double sum = 0.0;
  if (!logs) {
    for (size_t k = 0; k < n; k++) upto_[k] = sum += state[k] * after[k];
    return sum;
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double largest = -infinity;
  for (size_t k = 0; k < n; k++) largest = std::max(largest, state[k] + after[k]);
  if (largest == -infinity) return 0.0;
  for (size_t k = 0; k < n; k++) upto_[k] = sum += exponential(state[k] + after[k] - largest);
  return sum;
}

}  // namespace tallybayes
