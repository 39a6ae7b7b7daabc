#include "forest/trees.h"

#include <algorithm>

#include "core/parallel.h"
#include "forest/random.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

constexpr size_t block_rows = 512;
constexpr size_t most_together = 8192;     // rows that go down a tree together
constexpr size_t bytes_together = 524288;  // of their sums

struct Nothing {};
const auto nothing = [] { return Nothing{}; };
const auto finished = [](Nothing&) {};

// Runs `work(tree)` for all trees on several threads.
template <class Work>
void for_trees(const Trees& trees, size_t threads, double cells, Work work) {
  auto process = [&](Nothing&, size_t tree, Order&) {
    work(tree);
    return true;
  };
  run_parts(trees.n_trees(), choose_threads(threads, trees.n_trees(), cells), 1, nothing, process, finished);
}

// Runs `work(first, last)` for blocks of rows on several threads.
template <class Work>
void for_rows(size_t n, size_t threads, double cells, Work work) {
  const Grid grid(n, block_rows);
  auto process = [&](Nothing&, size_t part, Order&) {
    work(grid.first(part), grid.last(part));
    return true;
  };
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, cells), 1, nothing, process, finished);
}

// The weights of the classes in all nodes of a tree, (nodes, classes).
void node_counts(const Trees& trees, size_t t, const int64_t* counts, size_t n_classes, std::vector<int64_t>& sums) {
  const Trees::Node* tree = trees.root(t);
  const auto n_nodes = static_cast<size_t>(trees.roots[t + 1] - trees.roots[t]);
  const int64_t* leaves = counts + static_cast<size_t>(trees.leaves[t]) * n_classes;
  sums.resize(n_nodes * n_classes);
  for (size_t k = n_nodes; k-- > 0;) {
    int64_t* sum = sums.data() + k * n_classes;
    const auto next = static_cast<size_t>(tree[k].next) * n_classes;
    if (tree[k].column < 0) {
      std::copy_n(leaves + next, n_classes, sum);
    } else {
      for (size_t c = 0; c < n_classes; c++) sum[c] = sum[n_classes + c] + sums[next + c];
    }
  }
}

// p ← (n + strength·p) / (Σ n + strength); unchanged without rows. The class `own` has `less` weight.
bool back_off(const double* counts, size_t n_classes, double total, double strength, size_t own, double less, double* p) {
  if (total - less <= 0) return false;
  const double scale = 1.0 / ((total - less) + strength), mine = ((counts[own] - less) + strength * p[own]) * scale;
  for (size_t c = 0; c < n_classes; c++) p[c] = (counts[c] + strength * p[c]) * scale;
  p[own] = mine;
  return true;
}

// The weights of the classes in all nodes of a tree in rows, (nodes, classes), and their sums.
struct NodeWeights {
  std::vector<int64_t> sums;
  std::vector<double> weights, totals;

  void fill(const Trees& trees, size_t t, const int64_t* counts, size_t n_classes, double unit) {
    node_counts(trees, t, counts, n_classes, sums);
    weights.resize(sums.size()), totals.assign(sums.size() / n_classes, 0.0);
    for (size_t k = 0; k < totals.size(); k++) {
      int64_t total = 0;
      for (size_t c = 0; c < n_classes; c++) {
        const int64_t sum = sums[k * n_classes + c];
        weights[k * n_classes + c] = static_cast<double>(sum) * unit;
        total += sum;
      }
      totals[k] = static_cast<double>(total) * unit;
    }
  }
};

// One bit for every code, for each cut.
const std::vector<uint8_t>& tests_of_cuts() {
  static const std::vector<uint8_t> found = [] {
    std::vector<uint8_t> bits(32 * n_cuts, 0);
    for (size_t bit = 0; bit < size_t{n_cuts} * 256; bit++) {
      const bool left = goes_left(static_cast<int32_t>(bit >> 8), static_cast<uint8_t>(bit & 255));
      bits[bit >> 3] |= static_cast<uint8_t>(left << (bit & 7));
    }
    return bits;
  }();
  return found;
}

double work_of(const Trees& trees, size_t n) { return static_cast<double>(trees.n_trees()) * static_cast<double>(n) * 8; }

}  // namespace

Trees::Trees(const GrownTrees& grown, size_t columns) : roots(grown.roots), leaves{0}, n_columns(columns) {
  if (roots.empty() || roots[0] != 0 || static_cast<size_t>(roots.back()) != grown.nodes.size()) return;
  const auto n_masks = static_cast<int64_t>(grown.masks.size() / 4);
  if (n_masks >= (int64_t{1} << 27) - n_cuts) return;
  for (size_t t = 0; t < n_trees(); t++) {
    const int64_t first = roots[t], n_nodes = roots[t + 1] - first;
    if (n_nodes <= 0 || static_cast<size_t>(roots[t + 1]) > grown.nodes.size()) return;
    int32_t n = 0;
    for (int64_t k = 0; k < n_nodes; k++) {
      const TreeNode& node = grown.nodes[static_cast<size_t>(first + k)];
      if (node.column < 0) {
        if (node.next != n++) return;
        continue;
      }
      if (static_cast<size_t>(node.column) >= n_columns || node.next <= k + 1 || node.next >= n_nodes) return;
      if (node.cut >= n_cuts || (node.cut < 0 && ~static_cast<int64_t>(node.cut) >= n_masks)) return;
    }
    if (2 * static_cast<int64_t>(n) != n_nodes + 1) return;
    leaves.push_back(leaves.back() + n);
  }
  tests = tests_of_cuts();
  tests.resize(32 * (n_cuts + static_cast<size_t>(n_masks)));
  for (size_t k = 0; k < grown.masks.size() * 8; k++) {
    tests[32 * n_cuts + k] = static_cast<uint8_t>(grown.masks[k / 8] >> (8 * (k % 8)));
  }
  nodes.reserve(grown.nodes.size());
  for (const TreeNode& node : grown.nodes) {
    const uint32_t test = node.cut >= 0 ? static_cast<uint32_t>(node.cut) : n_cuts + static_cast<uint32_t>(~node.cut);
    nodes.push_back({node.column < 0 ? -1 : node.column, static_cast<uint32_t>(node.next), 32 * test});
  }
  valid_ = true;
}

void LeafFinder::find(const Trees& trees, size_t t, const uint8_t* codes, size_t n) {
  const Trees::Node* tree = trees.root(t);
  const auto n_nodes = static_cast<size_t>(trees.roots[t + 1] - trees.roots[t]);
  leaf.assign(n, 0);
  if (n_nodes == 1) return;
  if (n > n_nodes / 16) {  // nearly all nodes are visited
    for (size_t k = 0; k < n_nodes; k += 5) __builtin_prefetch(tree + k);
  }
  inner_.resize(n);
  for (size_t i = 0; i < n; i++) inner_[i] = static_cast<uint64_t>(i) << 32;
  uint64_t* inner = inner_.data();
  uint32_t* found = leaf.data();
  for (size_t n_inner = n; n_inner > 0;) {
    size_t kept = 0;
    for (size_t q = 0; q < n_inner; q++) {
      const size_t i = inner[q] >> 32;
      const auto here = static_cast<uint32_t>(inner[q]);
      const Trees::Node& node = tree[here];
      const uint32_t left = 0 - trees.goes_left(node, codes[i * trees.n_columns + static_cast<size_t>(node.column)]);
      const uint32_t next = node.next ^ ((node.next ^ (here + 1)) & left);
      found[i] = tree[next].next;
      inner[kept] = static_cast<uint64_t>(i) << 32 | next;
      kept += tree[next].column >= 0;
    }
    n_inner = kept;
  }
}

void fixed_shares(const float* proba, size_t n, size_t n_classes, int32_t* shares) {
  constexpr size_t width = 64;
  int32_t some[width];
  for (size_t first = 0; first < n; first += width) {
    const size_t m = std::min(width, n - first);
    for (size_t c = 0; c < n_classes; c++) {
      chosen_tier().kernels.fixed_rows(proba + c * n + first, m, some);
      for (size_t i = 0; i < m; i++) shares[(first + i) * n_classes + c] = some[i];
    }
  }
}

size_t rows_together(size_t n, size_t bytes, size_t threads) {
  const size_t most = std::min(most_together, bytes_together / std::max<size_t>(1, bytes));
  return std::max<size_t>(64, std::min(most, n / (2 * (threads ? threads : available_threads())) + 1));
}

void count_leaves(const Trees& trees, const CodedRows& rows, int64_t* counts, size_t threads) {
  std::fill_n(counts, trees.n_leaves() * rows.n_classes, 0);
  for_trees(trees, threads, work_of(trees, rows.n), [&](size_t t) {
    int64_t* leaves = counts + static_cast<size_t>(trees.leaves[t]) * rows.n_classes;
    LeafFinder finder;
    for (size_t first = 0; first < rows.n; first += most_together) {
      const size_t m = std::min(most_together, rows.n - first);
      finder.find(trees, t, rows.codes + first * trees.n_columns, m);
      for (size_t i = 0; i < m; i++) {
        const auto leaf = static_cast<size_t>(finder.leaf[i]), y = static_cast<size_t>(rows.y[first + i]);
        leaves[leaf * rows.n_classes + y] += rows.weight[first + i];
      }
    }
  });
}

void leaf_proba(const Trees& trees, const int64_t* counts, size_t n_classes, const double* strength, double unit,
                float* proba, size_t threads) {
  for_trees(trees, threads, static_cast<double>(trees.nodes.size() * n_classes), [&](size_t t) {
    NodeWeights node;
    node.fill(trees, t, counts, n_classes, unit);
    const Trees::Node* tree = trees.root(t);
    const size_t n_nodes = node.totals.size();
    std::vector<double> p(n_nodes * n_classes, 1.0 / static_cast<double>(n_classes));  // of the parent, until it is visited
    for (size_t k = 0; k < n_nodes; k++) {
      double* mine = p.data() + k * n_classes;
      back_off(node.weights.data() + k * n_classes, n_classes, node.totals[k], strength[t], 0, 0.0, mine);
      const auto next = static_cast<size_t>(tree[k].next);
      if (tree[k].column < 0) {
        float* leaf = proba + (static_cast<size_t>(trees.leaves[t]) + next) * n_classes;
        for (size_t c = 0; c < n_classes; c++) leaf[c] = static_cast<float>(mine[c]);
      } else {
        std::copy_n(mine, n_classes, mine + n_classes);
        std::copy_n(mine, n_classes, p.data() + next * n_classes);
      }
    }
  });
}

void mean_of_leaves(const Trees& trees, const TreeGroups& groups, const uint8_t* codes, size_t n, size_t n_classes,
                    const float* leaf_values, double* means, size_t threads) {
  struct Worker {
    LeafFinder finder;
    std::vector<double> sums;
  };
  const Grid grid(n, rows_together(n, n_classes * sizeof(double), threads));
  auto process = [&](Worker& worker, size_t part, Order&) {
    const size_t first = grid.first(part), m = grid.last(part) - first;
    for (size_t g = 0; g < groups.n_groups; g++) {
      worker.sums.assign(m * n_classes, 0.0);
      double* sums = worker.sums.data();
      for (auto t = static_cast<size_t>(groups.firsts[g]); t < static_cast<size_t>(groups.firsts[g + 1]); t++) {
        worker.finder.find(trees, t, codes + first * trees.n_columns, m);
        const uint32_t* leaf = worker.finder.leaf.data();
        const float* values = leaf_values + static_cast<size_t>(trees.leaves[t]) * n_classes;
        for (size_t i = 0; i < m; i++) {
          for (size_t c = 0; c < n_classes; c++) {
            sums[i * n_classes + c] += static_cast<double>(values[leaf[i] * n_classes + c]);
          }
        }
      }
      const double scale = 1.0 / static_cast<double>(std::max<int64_t>(1, groups.firsts[g + 1] - groups.firsts[g]));
      for (size_t i = 0; i < m; i++) {
        double* mean = means + ((first + i) * groups.n_groups + g) * n_classes;
        for (size_t c = 0; c < n_classes; c++) mean[c] = sums[i * n_classes + c] * scale;
      }
    }
    return true;
  };
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, work_of(trees, n)), 1, [] { return Worker(); }, process,
            [](Worker&) {});
}

void held_out_proba(const Trees& trees, const TreeGroups& groups, const CodedRows& rows, const int64_t* counts,
                    double unit, const uint64_t* keys, uint64_t bag, double* means, int32_t* n_trees, size_t threads) {
  const size_t n_classes = rows.n_classes, width = groups.n_groups * groups.n_choices * n_classes;
  std::fill_n(means, rows.n * width, 0.0);
  std::fill_n(n_trees, rows.n * groups.n_groups, 0);
  NodeWeights node;
  for (size_t g = 0; g < groups.n_groups; g++) {
    for (auto t = static_cast<size_t>(groups.firsts[g]); t < static_cast<size_t>(groups.firsts[g + 1]); t++) {
      node.fill(trees, t, counts, n_classes, unit);
      const Trees::Node* tree = trees.root(t);
      for_rows(rows.n, threads, static_cast<double>(rows.n * n_classes) * 8, [&](size_t first, size_t last) {
        std::vector<double> p(groups.n_choices * n_classes);
        for (size_t i = first; i < last; i++) {
          if (in_bag(keys[i], t - static_cast<size_t>(groups.firsts[g]), bag)) continue;
          std::fill(p.begin(), p.end(), 1.0 / static_cast<double>(n_classes));
          const uint8_t* row = rows.codes + i * trees.n_columns;
          const auto own = static_cast<size_t>(rows.y[i]);
          const double less = static_cast<double>(rows.weight[i]) * unit;
          for (size_t k = 0, any = 1; any;) {
            for (size_t j = 0; j < groups.n_choices; j++) {
              any = back_off(node.weights.data() + k * n_classes, n_classes, node.totals[k],
                             groups.strength[j * trees.n_trees() + t], own, less, p.data() + j * n_classes);
            }
            if (tree[k].column < 0) break;
            k = trees.goes_left(tree[k], row[tree[k].column]) ? k + 1 : static_cast<size_t>(tree[k].next);
          }
          double* sum = means + i * width + g * n_classes;
          for (size_t j = 0; j < groups.n_choices; j++) {
            for (size_t c = 0; c < n_classes; c++) sum[j * groups.n_groups * n_classes + c] += p[j * n_classes + c];
          }
          n_trees[i * groups.n_groups + g]++;
        }
      });
    }
  }
  for (size_t i = 0; i < rows.n; i++) {
    for (size_t k = 0; k < width; k++) {
      means[i * width + k] *= 1.0 / std::max(1, n_trees[i * groups.n_groups + k / n_classes % groups.n_groups]);
    }
  }
}

}  // namespace tallybayes
