// Sums of rows in the leaves of chains, and held-out scores. The scores that expected counts come from are frozen with
// the trees, and expected counts are rounded to integers: rows are added and removed exactly, in any order.
#include <algorithm>

#include "core/parallel.h"
#include "forest/trees.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

constexpr size_t most_cells = 65536;  // scores of a block of rows

int64_t expected_of(int64_t weight, int64_t share) { return weight == row_weight ? share : (weight * share + 32768) >> 16; }

double chain_cells(const Trees& trees, const CodedRows& rows) {
  return static_cast<double>(trees.n_trees()) * static_cast<double>(rows.n) * static_cast<double>(8 + rows.n_classes);
}

// A block of rows that passes the trees of a chain: their leaves, and the class probabilities before each tree, by
// class.
class ChainPass {
 public:
  ChainPass(const Trees& trees, const ChainScores& chains, size_t n_classes)
      : trees_(trees), chains_(chains), n_classes_(n_classes), length_(trees.n_trees() / chains.n_chains) {}

  size_t most_rows() const { return std::max<size_t>(64, most_cells / n_classes_); }
  // The first leaf of the tree times the number of classes.
  size_t leaf(size_t i) const { return static_cast<size_t>(finder_.leaf[i]) * n_classes_; }
  const int32_t* shares(size_t i) const { return shares_.data() + i * n_classes_; }

  // visit(start): after every tree; `start` is the place of its first leaf in arrays (leaves, classes).
  template <class Visit>
  void run(size_t chain, const uint8_t* codes, size_t n, Visit visit) {
    score_.resize(n * n_classes_), proba_.resize(n * n_classes_), shares_.resize(n * n_classes_);
    for (size_t c = 0; c < n_classes_; c++) std::fill_n(score_.data() + c * n, n, chains_.base[c]);
    const Kernels& kernels = chosen_tier().kernels;
    for (size_t t = chain * length_; t < (chain + 1) * length_; t++) {
      finder_.find(trees_, t, codes, n);
      kernels.softmax_rows(score_.data(), n, n_classes_, proba_.data());
      fixed_shares(proba_.data(), n, n_classes_, shares_.data());
      const size_t start = static_cast<size_t>(trees_.leaves[t]) * n_classes_;
      visit(start);
      const float* added = chains_.scores + start;
      for (size_t c = 0; c < n_classes_; c++) {
        for (size_t i = 0; i < n; i++) score_[c * n + i] += added[leaf(i) + c];
      }
    }
  }

 private:
  const Trees& trees_;
  const ChainScores& chains_;
  size_t n_classes_, length_;
  LeafFinder finder_;
  std::vector<float> score_, proba_;
  std::vector<int32_t> shares_;
};

}  // namespace

void count_chains(const Trees& trees, const ChainScores& chains, const CodedRows& rows, const int64_t* bag_weight,
                  const ChainSums& sums, size_t threads) {
  const size_t n_classes = rows.n_classes;
  for (int64_t* sum : {sums.observed, sums.expected, sums.observed_outside, sums.expected_outside}) {
    std::fill_n(sum, trees.n_leaves() * n_classes, 0);
  }
  struct Part {  // of the weight of a row: nearly all rows have one
    size_t row;
    int64_t weight, *observed, *expected;
  };
  auto process = [&](ChainPass& pass, size_t m, Order&) {
    std::vector<Part> parts;
    for (size_t first = 0; first < rows.n; first += pass.most_rows()) {
      const size_t n = std::min(pass.most_rows(), rows.n - first);
      parts.clear();
      for (size_t i = 0; i < n; i++) {
        const int64_t inside = bag_weight[m * rows.n + first + i], beyond = rows.weight[first + i] - inside;
        if (inside) parts.push_back({i, inside, sums.observed, sums.expected});
        if (beyond) parts.push_back({i, beyond, sums.observed_outside, sums.expected_outside});
      }
      pass.run(m, rows.codes + first * trees.n_columns, n, [&](size_t start) {
        for (const Part& part : parts) {
          const size_t k = start + pass.leaf(part.row);
          part.observed[k + static_cast<size_t>(rows.y[first + part.row])] += part.weight;
          add_expected(part.weight, pass.shares(part.row), n_classes, part.expected + k);
        }
      });
    }
    return true;
  };
  run_parts(chains.n_chains, choose_threads(threads, chains.n_chains, chain_cells(trees, rows)), 1,
            [&] { return ChainPass(trees, chains, n_classes); }, process, [](ChainPass&) {});
}

void held_out_scores(const Trees& trees, const ChainScores& chains, const CodedRows& rows, const ChainSums& sums,
                     const HeldOutChains& how, float* scores, size_t threads) {
  const size_t n_classes = rows.n_classes, d = trees.n_columns;
  std::vector<std::vector<size_t>> members(chains.n_chains);
  for (size_t i = 0; i < rows.n; i++) members[static_cast<size_t>(how.outside[i])].push_back(i);
  struct Worker {
    ChainPass pass;
    std::vector<uint8_t> codes;
    std::vector<double> parts[4];  // observed and expected weights of the leaf of each row, by class
    std::vector<float> scores;
  };
  struct Block {
    size_t chain, first, last;
  };
  std::vector<Block> blocks;
  const size_t most = ChainPass(trees, chains, n_classes).most_rows();
  for (size_t m = 0; m < chains.n_chains; m++) {
    for (size_t first = 0; first < members[m].size(); first += most) {
      blocks.push_back({m, first, std::min(first + most, members[m].size())});
    }
  }
  auto process = [&](Worker& worker, size_t part, Order&) {
    const Block block = blocks[part];
    const size_t* places = members[block.chain].data() + block.first;
    const size_t n = block.last - block.first, cells = n * n_classes;
    worker.codes.resize(n * d);
    for (size_t i = 0; i < n; i++) std::copy_n(rows.codes + places[i] * d, d, worker.codes.data() + i * d);
    for (auto& values : worker.parts) values.resize(cells);
    worker.scores.resize(how.n_choices * cells);
    for (size_t k = 0; k < how.n_choices * n_classes; k++) {
      std::fill_n(worker.scores.data() + k * n, n, chains.base[k % n_classes]);
    }
    worker.pass.run(block.chain, worker.codes.data(), n, [&](size_t start) {
      for (size_t i = 0; i < n; i++) {
        const size_t k = start + worker.pass.leaf(i);
        const int64_t weight = rows.weight[places[i]];
        const auto y = static_cast<size_t>(rows.y[places[i]]);
        for (size_t c = 0; c < n_classes; c++) {
          const int64_t n_out = sums.observed_outside[k + c] - (c == y ? weight : 0);
          const int64_t e_out = sums.expected_outside[k + c] - expected_of(weight, worker.pass.shares(i)[c]);
          const int64_t all[] = {sums.observed[k + c], n_out, sums.expected[k + c], e_out};
          for (size_t q = 0; q < 4; q++) worker.parts[q][c * n + i] = static_cast<double>(all[q]) * how.unit;
        }
      }
      for (size_t j = 0; j < how.n_choices; j++) {
        chosen_tier().kernels.add_log_ratios(worker.parts[0].data(), worker.parts[1].data(), worker.parts[2].data(),
                                             worker.parts[3].data(), cells,
                                             how.outside_weight[j * chains.n_chains + block.chain], how.strength,
                                             static_cast<float>(how.rate), worker.scores.data() + j * cells);
      }
    });
    for (size_t j = 0; j < how.n_choices; j++) {
      for (size_t i = 0; i < n; i++) {
        float* out = scores + (j * rows.n + places[i]) * n_classes;
        for (size_t c = 0; c < n_classes; c++) out[c] = worker.scores[j * cells + c * n + i];
      }
    }
    return true;
  };
  run_parts(blocks.size(), choose_threads(threads, blocks.size(), chain_cells(trees, rows)), 1,
            [&] { return Worker{ChainPass(trees, chains, n_classes), {}, {}, {}}; }, process, [](Worker&) {});
}

}  // namespace tallybayes
