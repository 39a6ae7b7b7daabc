// Sums of rows in the leaves of chains, and held-out scores. The scores that expected counts come from are frozen with
// the trees, and expected counts are rounded to integers: rows are added and removed exactly, in any order.
#include <algorithm>

#include "core/parallel.h"
#include "forest/float_math.h"
#include "forest/trees.h"

namespace tallybayes {

namespace {

constexpr size_t block_rows = 256;

struct Worker {
  std::vector<float> score, proba;
  explicit Worker(size_t n_classes) : score(n_classes), proba(n_classes) {}
};

// w·p for a weight in units of 2⁻¹⁶, rounded.
int64_t expected_of(int64_t weight, float p) {
  const auto share = static_cast<int64_t>(p * 65536.0f + 0.5f);
  return (weight * share + 32768) >> 16;
}

double chain_cells(const Trees& trees, const CodedRows& rows) {
  return static_cast<double>(trees.n_trees()) * static_cast<double>(rows.n) * static_cast<double>(8 + rows.n_classes);
}

}  // namespace

void count_chains(const Trees& trees, const ChainScores& chains, const CodedRows& rows, const int64_t* bag_weight,
                  const ChainSums& sums, size_t threads) {
  const size_t n_classes = rows.n_classes, length = trees.n_trees() / std::max<size_t>(1, chains.n_chains);
  for (int64_t* sum : {sums.observed, sums.expected, sums.observed_outside, sums.expected_outside}) {
    std::fill_n(sum, trees.n_leaves() * n_classes, 0);
  }
  auto process = [&](Worker& worker, size_t m, Order&) {
    float *score = worker.score.data(), *p = worker.proba.data();
    for (size_t i = 0; i < rows.n; i++) {
      const uint8_t* row = rows.codes + i * trees.n_columns;
      const int64_t inside = bag_weight[m * rows.n + i], beyond = rows.weight[i] - inside;
      const auto y = static_cast<size_t>(rows.y[i]);
      std::copy_n(chains.base, n_classes, score);
      for (size_t t = m * length; t < (m + 1) * length; t++) {
        const size_t leaf = leaf_of(trees.nodes.data() + trees.roots[t], trees.masks.data(), row);
        const size_t k = (static_cast<size_t>(trees.leaves[t]) + leaf) * n_classes;
        softmax(score, n_classes, p);
        if (inside) {
          sums.observed[k + y] += inside;
          for (size_t c = 0; c < n_classes; c++) sums.expected[k + c] += expected_of(inside, p[c]);
        }
        if (beyond) {
          sums.observed_outside[k + y] += beyond;
          for (size_t c = 0; c < n_classes; c++) sums.expected_outside[k + c] += expected_of(beyond, p[c]);
        }
        for (size_t c = 0; c < n_classes; c++) score[c] += chains.scores[k + c];
      }
    }
    return true;
  };
  run_parts(chains.n_chains, choose_threads(threads, chains.n_chains, chain_cells(trees, rows)), 1,
            [&] { return Worker(n_classes); }, process, [](Worker&) {});
}

void held_out_scores(const Trees& trees, const ChainScores& chains, const CodedRows& rows, const ChainSums& sums,
                     const HeldOutChains& how, float* scores, size_t threads) {
  const size_t n_classes = rows.n_classes, length = trees.n_trees() / std::max<size_t>(1, chains.n_chains);
  const Grid grid(rows.n, block_rows);
  const auto rate = static_cast<float>(how.rate);
  auto process = [&](Worker& worker, size_t part, Order&) {
    float *score = worker.score.data(), *p = worker.proba.data();
    for (size_t i = grid.first(part); i < grid.last(part); i++) {
      const auto m = static_cast<size_t>(how.outside[i]), y = static_cast<size_t>(rows.y[i]);
      std::copy_n(chains.base, n_classes, score);
      for (size_t j = 0; j < how.n_choices; j++) std::copy_n(score, n_classes, scores + (j * rows.n + i) * n_classes);
      for (size_t t = m * length; t < (m + 1) * length; t++) {
        const uint8_t* row = rows.codes + i * trees.n_columns;
        const size_t leaf = leaf_of(trees.nodes.data() + trees.roots[t], trees.masks.data(), row);
        const size_t k = (static_cast<size_t>(trees.leaves[t]) + leaf) * n_classes;
        softmax(score, n_classes, p);
        for (size_t j = 0; j < how.n_choices; j++) {
          const double weight = how.outside_weight[j * chains.n_chains + m];
          float* out = scores + (j * rows.n + i) * n_classes;
          for (size_t c = 0; c < n_classes; c++) {
            const int64_t own = c == y ? rows.weight[i] : 0;
            const int64_t n = sums.observed_outside[k + c] - own;
            const int64_t e = sums.expected_outside[k + c] - expected_of(rows.weight[i], p[c]);
            const double high = (static_cast<double>(sums.observed[k + c]) + weight * static_cast<double>(n)) * how.unit;
            const double low = (static_cast<double>(sums.expected[k + c]) + weight * static_cast<double>(e)) * how.unit;
            out[c] += rate * log_of_positive(static_cast<float>((high + how.strength) / (low + how.strength)));
          }
        }
        for (size_t c = 0; c < n_classes; c++) score[c] += chains.scores[k + c];
      }
    }
    return true;
  };
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, chain_cells(trees, rows)), 1,
            [&] { return Worker(n_classes); }, process, [](Worker&) {});
}

}  // namespace tallybayes
