// Trees in the making: nodes in preorder, masks, and the concatenation of trees that were grown by several threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>

#include "forest/random.h"
#include "forest/trees.h"

namespace tallybayes {
namespace {

constexpr size_t n_codes = 256;

struct TreeInProgress {
  std::vector<TreeNode> nodes;
  std::vector<uint64_t> masks;
  int32_t n_leaves = 0;
};

// The best split of a node so far; `left` are the codes that go left, of a categorical column.
struct Split {
  int32_t column = -1;
  int32_t cut = 0;
  bool any_missing = false;
  bool categorical = false;
  bool left[n_codes];
};

// A part of the rows that becomes a node. `parent` is the node of which it is the right child, or −1.
struct NodeRows {
  size_t first, last, depth;
  int32_t parent;
};

// Appends a node for these rows; it is a leaf if the split has no column.
inline void add_node(TreeInProgress& tree, const NodeRows& rows, const Split& split) {
  const auto k = static_cast<int32_t>(tree.nodes.size());
  if (rows.parent >= 0) tree.nodes[static_cast<size_t>(rows.parent)].next = k;
  if (split.column < 0) {
    tree.nodes.push_back({-1, tree.n_leaves++, 0});
    return;
  }
  int32_t cut = split.cut;
  if (split.categorical) {
    cut = ~static_cast<int32_t>(tree.masks.size() / 4);
    tree.masks.resize(tree.masks.size() + 4, 0);
    uint64_t* mask = tree.masks.data() + tree.masks.size() - 4;
    for (size_t v = 0; v < n_codes; v++) mask[v >> 6] |= static_cast<uint64_t>(split.left[v]) << (v & 63);
  }
  tree.nodes.push_back({split.column, 0, cut});
}

inline bool split_left(const Split& split, uint8_t code) {
  return split.categorical ? split.left[code] : goes_left(split.cut, code);
}

// Codes that no row of the node has go where most rows go.
inline void send_absent(Split& split, bool most_left, const bool (&present)[n_codes]) {
  if (!split.categorical) {
    if (!split.any_missing && !most_left && split.cut > 0) split.cut |= 256;
    return;
  }
  for (size_t v = 0; v < n_codes; v++) split.left[v] = present[v] ? split.left[v] : most_left;
}

// The codes that some rows have.
class CodeSet {
 public:
  bool present[n_codes] = {};

  void add(uint8_t code) { present[code] = true; }
  // In ascending order; the set stays.
  void list(std::vector<size_t>& codes) const {
    codes.resize(n_codes);
    size_t n = 0;
    for (size_t v = 0; v < n_codes; v += 64) {
      uint64_t bits = 0;
      for (size_t k = 0; k < 64; k += 8) {  // eight bytes of 0 or 1 become eight bits
        uint64_t word;
        std::memcpy(&word, present + v + k, sizeof(word));
        bits |= (word * 0x0102040810204080 >> 56) << k;
      }
      for (; bits; bits &= bits - 1) codes[n++] = v + static_cast<size_t>(__builtin_ctzll(bits));
    }
    codes.resize(n);
  }
  void clear() { std::fill(std::begin(present), std::end(present), false); }
};

// Columns in random order, without replacement at a node.
class ColumnDraw {
 public:
  explicit ColumnDraw(size_t n) : columns_(n), left_(n) { std::iota(columns_.begin(), columns_.end(), 0); }
  void restart() { left_ = columns_.size(); }
  bool empty() const { return left_ == 0; }
  size_t draw(Random& random) {
    const size_t place = random.below(static_cast<uint32_t>(left_));
    std::swap(columns_[place], columns_[--left_]);
    return columns_[left_];
  }

 private:
  std::vector<size_t> columns_;
  size_t left_;
};

inline GrownTrees joined_trees(std::vector<TreeInProgress>& parts) {
  GrownTrees out;
  for (TreeInProgress& part : parts) {
    const auto n_masks = static_cast<int32_t>(out.masks.size() / 4);
    for (TreeNode& node : part.nodes) {
      if (node.cut < 0) node.cut -= n_masks;
    }
    out.nodes.insert(out.nodes.end(), part.nodes.begin(), part.nodes.end());
    out.masks.insert(out.masks.end(), part.masks.begin(), part.masks.end());
    out.roots.push_back(static_cast<int64_t>(out.nodes.size()));
    part = TreeInProgress();
  }
  return out;
}

}  // namespace
}  // namespace tallybayes
