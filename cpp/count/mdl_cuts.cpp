// Supervised discretization by the minimum description length principle (Fayyad and Irani, 1993).
#include "count/mdl_cuts.h"

#include <algorithm>
#include <cmath>

namespace tallybayes {

namespace {

constexpr size_t most_tried = 512;  // candidate edges of the coarse search

// Cumulative class counts at every edge, and their total entropy.
struct Borders {
  std::vector<size_t> place;  // index of the value after every edge
  std::vector<int32_t> totals;  // (edges + 2, classes): cumulative counts at the start, at every edge, and at the end
  size_t n_classes;
  const double* n_log_n;

  const int32_t* upto(size_t border) const { return totals.data() + border * n_classes; }

  // n times the entropy of the classes between two borders, in nats.
  double spread(size_t first, size_t last) const {
    const int32_t *low = upto(first), *high = upto(last);
    int64_t total = high[0] - low[0];
    double sum = n_log_n[total];
    for (size_t k = 1; k < n_classes; k++) {
      total += high[k] - low[k];
      sum += n_log_n[high[k] - low[k]];
    }
    return n_log_n[total] - sum;
  }
};

struct Part {
  double n = 0, entropy = 0;
  int n_seen = 0;
};

Part part_of(const Borders& borders, size_t first, size_t last) {
  Part part;
  const int32_t *low = borders.upto(first), *high = borders.upto(last);
  for (size_t k = 0; k < borders.n_classes; k++) {
    part.n += high[k] - low[k];
    part.n_seen += high[k] > low[k];
  }
  part.entropy = borders.spread(first, last) / part.n / std::log(2.0);
  return part;
}

// The best edge between two others; `first` if the criterion rejects it.
size_t best_border(const Borders& borders, size_t first, size_t last) {
  const size_t n_inner = last - first - 1;
  if (n_inner < 1) return first;
  size_t best = first;
  double least = 0;
  auto look = [&](size_t from, size_t to, size_t step) {
    best = first;
    for (size_t border = from; border <= to; border += step) {
      const double cost = borders.spread(first, border) + borders.spread(border, last);
      if (best == first || cost < least) best = border, least = cost;
    }
  };
  const size_t step = std::max<size_t>(1, n_inner / most_tried);
  look(first + 1, last - 1, step);
  if (step > 1) look(best > first + step ? best - step : first + 1, std::min(last - 1, best + step), 1);
  const Part whole = part_of(borders, first, last);
  if (whole.n <= 2) return first;
  const Part left = part_of(borders, first, best), right = part_of(borders, best, last);
  const double ways = whole.n_seen < 30 ? std::log2(std::pow(3.0, whole.n_seen) - 2) : whole.n_seen * std::log2(3.0);
  const double price =
      ways - (whole.n_seen * whole.entropy - left.n_seen * left.entropy - right.n_seen * right.entropy);
  const double gain = whole.n * whole.entropy - least / std::log(2.0);
  return gain > std::log2(whole.n - 1) + price ? best : first;
}

// An edge between two values of the same single class is never optimal; only the other edges are tried.
Borders borders_of(const int32_t* table, size_t n_classes, size_t n_values, const double* n_log_n) {
  Borders borders{{}, std::vector<int32_t>(n_classes, 0), n_classes, n_log_n};
  std::vector<int32_t> upto(n_classes, 0);
  int64_t before = -1;
  for (size_t value = 0; value < n_values; value++) {
    int64_t only = -1;
    int n_seen = 0;
    for (size_t k = 0; k < n_classes; k++) {
      if (table[k * n_values + value] > 0) only = static_cast<int64_t>(k), n_seen++;
    }
    if (n_seen != 1) only = -1;
    if (value > 0 && (only < 0 || only != before)) {
      borders.place.push_back(value);
      borders.totals.insert(borders.totals.end(), upto.begin(), upto.end());
    }
    before = only;
    for (size_t k = 0; k < n_classes; k++) upto[k] += table[k * n_values + value];
  }
  borders.totals.insert(borders.totals.end(), upto.begin(), upto.end());
  return borders;
}

}  // namespace

std::vector<size_t> best_cuts(const int32_t* table, size_t n_classes, size_t n_values, const double* n_log_n) {
  const Borders borders = borders_of(table, n_classes, n_values, n_log_n);
  std::vector<size_t> found;
  std::vector<std::pair<size_t, size_t>> todo{{0, borders.place.size() + 1}};
  while (!todo.empty()) {
    const auto [first, last] = todo.back();
    todo.pop_back();
    const size_t cut = best_border(borders, first, last);
    if (cut == first) continue;
    found.push_back(borders.place[cut - 1]);
    todo.emplace_back(first, cut);
    todo.emplace_back(cut, last);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tallybayes
