// Trees over columns of codes from 0 to 255, and sums of rows in their leaves. Code 0 is a missing cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

// Nodes of a tree are in preorder: the left child follows its parent.
struct TreeNode {
  int32_t column;  // −1: a leaf
  int32_t next;    // the right child, or the number of the leaf, both within the tree
  int32_t cut;     // from 0 on: codes up to its low byte go left, missing cells right if bit 8 is set; else ~mask
};
static_assert(sizeof(TreeNode) == 12, "nodes are passed as three integers");

constexpr int32_t n_cuts = 512;

// Codes up to the cut go left; with bit 8, without missing cells.
inline bool goes_left(int32_t cut, uint8_t code) {
  const int32_t shift = cut >> 8;
  return static_cast<uint8_t>(code - shift) <= static_cast<uint8_t>(cut - shift);
}

// Trees as they were grown.
struct GrownTrees {
  std::vector<int64_t> roots{0};  // the first node of every tree, and the end
  std::vector<TreeNode> nodes;
  std::vector<uint64_t> masks;    // four words for each mask: the codes that go left
};

// Trees that rows go down. All nodes are alike: a table has one bit for every code, for each cut and for each mask.
struct Trees {
  struct Node {
    int32_t column;   // −1: a leaf
    uint32_t next;    // the right child, or the number of the leaf, both within the tree
    uint32_t test;    // the first byte of its bits
  };

  std::vector<int64_t> roots, leaves;  // the first node and the first leaf of every tree, and the ends
  std::vector<Node> nodes;
  std::vector<uint8_t> tests;
  size_t n_columns;

  Trees(const GrownTrees&, size_t columns);
  bool valid() const { return valid_; }  // false: a row could leave its tree
  size_t n_trees() const { return roots.size() - 1; }
  size_t n_leaves() const { return static_cast<size_t>(leaves.back()); }
  const Node* root(size_t tree) const { return nodes.data() + roots[tree]; }
  // 1 or 0.
  uint32_t goes_left(const Node& node, uint32_t code) const { return tests[node.test + (code >> 3)] >> (code & 7) & 1; }

 private:
  bool valid_ = false;
};

// Finds the leaves of many rows within a tree. Branches on codes could not be predicted, so there are none: rows that
// have not reached a leaf are listed, and each of them advances by one node at a time.
class LeafFinder {
 public:
  std::vector<uint32_t> leaf;
  void find(const Trees&, size_t tree, const uint8_t* codes, size_t n);

 private:
  std::vector<uint64_t> inner_;  // the row, and its node
};

// Class probabilities (classes, n) as multiples of 2⁻¹⁶, (n, classes).
void fixed_shares(const float* proba, size_t n, size_t n_classes, int32_t* shares);

// The size of blocks of rows that go down the trees one after the other; `bytes` are those of the sums of a row.
size_t rows_together(size_t n, size_t bytes, size_t threads);

// Rows in the order of memory, (n, columns), with their class codes and weights.
struct CodedRows {
  const uint8_t* codes;
  size_t n;
  const int32_t* y;
  const int64_t* weight;
  size_t n_classes;
};

// Groups of trees: the first tree of every group, and the end; strengths of backing off, (choices, trees).
struct TreeGroups {
  const int64_t* firsts;
  size_t n_groups;
  const double* strength;
  size_t n_choices;
};

// The weight of every class in every leaf, (leaves, classes).
void count_leaves(const Trees&, const CodedRows&, int64_t* counts, size_t threads);

// p(class | leaf), (leaves, classes): the counts of the nodes on the path, each shrunk towards its parent.
void leaf_proba(const Trees&, const int64_t* counts, size_t n_classes, const double* strength, double unit, float* proba,
                size_t threads);

// Means over the trees of each group of a number for every class and leaf, (n, groups, classes).
void mean_of_leaves(const Trees&, const TreeGroups&, const uint8_t* codes, size_t n, size_t n_classes,
                    const float* leaf_values, double* means, size_t threads);

// p(class | row) of every group without the row: of the trees that were not grown from it, less its own weight; (n,
// choices, groups, classes), and the number of such trees, (n, groups).
void held_out_proba(const Trees&, const TreeGroups&, const CodedRows&, const int64_t* counts, double unit,
                    const uint64_t* keys, uint64_t bag, double* means, int32_t* n_trees, size_t threads);

// ---- Growing -----------------------------------------------------------------------------------------------------

// Training rows in columns, (columns, n). The sum of the weights is below 2³¹; `unit` is the weight of one row.
struct GrowthRows {
  const uint8_t* codes;
  size_t n, n_columns;
  const uint8_t* categorical;  // flags of the columns
  const int32_t* y;
  const int32_t* weight;
  size_t n_classes;
  int64_t unit;
};

struct ForestOptions {
  size_t columns_tried;  // at a node
  bool random_cuts;      // one random split of a column instead of all
  int64_t min_leaf;      // weight
  size_t max_depth;
  const uint64_t* keys;  // of the rows
  uint64_t bag, seed;
  size_t first_tree, n_trees;
};

// Trees that reduce the class entropy, each from its own sample of the rows.
GrownTrees grow_forest(const GrowthRows&, const ForestOptions&, size_t threads);

struct ChainOptions {
  size_t n_chains, columns_tried, max_depth;
  int64_t min_leaf;
  double rate, strength, ridge;
  uint64_t seed;
  size_t most_trees, step, patience;  // trees of a chain; grown `step` at a time
  const int32_t* outside;             // of each row, the chain that is not grown from it
  const float* base;                  // log score of every class before the first tree
  const uint64_t* keys;               // of the rows: splits of a tree are searched in a sample of them
  uint64_t bag;
  const int64_t* weight;      // to sum the rows as `count_chains` does: their weights, or null
  const int64_t* bag_weight;  // (chains, n)
};

struct GrownChains {
  GrownTrees trees;           // those of the first chain, of the second and so on, equally many
  std::vector<float> scores;  // (leaves, classes): what each tree adds to the log scores
  std::vector<double> loss;   // sum of the held-out log losses after each tree, in nats
  std::vector<int64_t> sums[4];  // those of `count_chains`, (leaves, classes), or empty
};

// Chains of boosted trees whose leaves compare observed counts with counts expected by the trees before.
GrownChains grow_chains(const GrowthRows&, const ChainOptions&, size_t threads);

// ---- Chains ------------------------------------------------------------------------------------------------------

struct ChainScores {
  size_t n_chains;
  const float* scores;  // frozen, (leaves, classes)
  const float* base;    // (classes)
};

// Observed and expected weights of every class in every leaf, (leaves, classes). `bag_weight` (chains, n) goes to the
// first pair of sums, the rest of each row's weight to the second.
struct ChainSums {
  int64_t *observed, *expected, *observed_outside, *expected_outside;
};
void count_chains(const Trees&, const ChainScores&, const CodedRows&, const int64_t* bag_weight, const ChainSums&,
                  size_t threads);

constexpr int64_t row_weight = 65536;

// sums += the expected weights of a row, rounded: w·p for a weight in units of 2⁻¹⁶.
inline void add_expected(int64_t weight, const int32_t* shares, size_t n_classes, int64_t* sums) {
  if (weight == row_weight) {
    for (size_t c = 0; c < n_classes; c++) sums[c] += shares[c];
  } else {
    for (size_t c = 0; c < n_classes; c++) sums[c] += (weight * shares[c] + 32768) >> 16;
  }
}

// Log scores of rows by the chain that was not grown from them, less their own counts, for several weights of the rows
// outside, `outside_weight` (choices, chains): (choices, n, classes).
struct HeldOutChains {
  const int32_t* outside;  // of each row, its chain
  const double* outside_weight;
  size_t n_choices;
  double rate, strength, unit;
};
void held_out_scores(const Trees&, const ChainScores&, const CodedRows&, const ChainSums&, const HeldOutChains&,
                     float* scores, size_t threads);

}  // namespace tallybayes
