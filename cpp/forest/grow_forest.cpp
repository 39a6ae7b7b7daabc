// Growing of forests: splits that reduce the class entropy. All sums are integers, so neither the order of the rows nor
// the number of threads changes a tree.
#include <cmath>

#include "core/elementary.h"
#include "core/parallel.h"
#include "forest/tree_builder.h"

namespace tallybayes {

namespace {

constexpr double log_unit = 1048576.0;
constexpr size_t n_tabled = 65536;

int64_t rounded_n_log_n(int64_t n) {
  const auto x = static_cast<double>(n);
  return n ? static_cast<int64_t>(x * natural_log(x) * log_unit + 0.5) : 0;
}

const int64_t* n_log_n_table() {
  static const std::vector<int64_t> table = [] {
    std::vector<int64_t> values(n_tabled);
    for (size_t n = 0; n < n_tabled; n++) values[n] = rounded_n_log_n(static_cast<int64_t>(n));
    return values;
  }();
  return table.data();
}

struct Row {
  uint32_t index;
  int32_t y, weight;
};

class TreeGrower {
 public:
  TreeGrower(const GrowthRows& rows, const ForestOptions& options)
      : data_(rows), options_(options), table_(n_log_n_table()), draw_(rows.n_columns), total_(rows.n_classes),
        left_(rows.n_classes), other_(rows.n_classes), counts_(n_codes * rows.n_classes) {}

  TreeInProgress grow(size_t number) {
    TreeInProgress tree;
    Random random(options_.seed, number);
    draw_ = ColumnDraw(data_.n_columns);
    rows_.clear();
    for (size_t i = 0; i < data_.n; i++) {
      if (!in_bag(options_.keys[i], number, options_.bag)) continue;
      rows_.push_back({static_cast<uint32_t>(i), data_.y[i], data_.weight[i]});
    }
    spare_.resize(rows_.size());
    std::vector<NodeRows> open{{0, rows_.size(), 0, -1}};
    while (!open.empty()) {
      const NodeRows part = open.back();
      open.pop_back();
      Split best;
      find_split(part, random, best);
      const auto node = static_cast<int32_t>(tree.nodes.size());
      add_node(tree, part, best);
      if (best.column < 0) continue;
      const size_t middle = divide(part, best);
      open.push_back({middle, part.last, part.depth + 1, node});
      open.push_back({part.first, middle, part.depth + 1, -1});
    }
    return tree;
  }

 private:
  int64_t n_log_n(int64_t n) const { return n < static_cast<int64_t>(n_tabled) ? table_[n] : rounded_n_log_n(n); }

  void find_split(const NodeRows& part, Random& random, Split& best) {
    std::fill(total_.begin(), total_.end(), 0);
    for (size_t q = part.first; q < part.last; q++) total_[static_cast<size_t>(rows_[q].y)] += rows_[q].weight;
    weight_ = 0, n_present_ = 0, whole_ = 0;
    for (const int64_t n : total_) weight_ += n, n_present_ += n > 0, whole_ += n_log_n(n);
    if (n_present_ < 2 || weight_ < 2 * options_.min_leaf || part.depth >= options_.max_depth) return;
    base_ = n_log_n(weight_) - whole_;
    gain_ = 0;
    draw_.restart();
    for (size_t tried = 0; !draw_.empty() && tried < options_.columns_tried;) {
      const size_t column = draw_.draw(random);
      tried += data_.categorical[column] ? try_levels(column, part, random, best) : try_cuts(column, part, random, best);
    }
  }

  // Stable, so that the rows stay in ascending order.
  size_t divide(const NodeRows& part, const Split& split) {
    const uint8_t* x = data_.codes + static_cast<size_t>(split.column) * data_.n;
    size_t left = part.first, right = 0;
    for (size_t q = part.first; q < part.last; q++) {
      const Row row = rows_[q];
      if (split_left(split, x[row.index])) {
        rows_[left++] = row;
      } else {
        spare_[right++] = row;
      }
    }
    std::copy_n(spare_.begin(), right, rows_.begin() + static_cast<ptrdiff_t>(left));
    return left;
  }

  // ---- The sums of one split -----------------------------------------------------------------------------------

  void start_empty() {
    std::fill(left_.begin(), left_.end(), 0);
    left_weight_ = 0;
    sum_ = whole_;
  }
  void move_left(size_t c, int64_t weight) {
    const int64_t before = left_[c], after = before + weight, all = total_[c];
    sum_ += n_log_n(after) + n_log_n(all - after) - n_log_n(before) - n_log_n(all - before);
    left_[c] = after;
    left_weight_ += weight;
  }
  bool better() {
    const int64_t right = weight_ - left_weight_;
    if (left_weight_ < options_.min_leaf || right < options_.min_leaf || left_weight_ == 0 || right == 0) return false;
    const int64_t gain = base_ - n_log_n(left_weight_) - n_log_n(right) + sum_;
    if (gain <= gain_) return false;
    gain_ = gain;
    return true;
  }
  bool most_left() const { return 2 * left_weight_ >= weight_; }

  // ---- Numeric columns -----------------------------------------------------------------------------------------

  // The codes of the rows of a node, next to each other.
  void load_codes(size_t column, const NodeRows& part) {
    const uint8_t* x = data_.codes + column * data_.n;
    codes_.resize(part.last - part.first);
    for (size_t q = 0; q < codes_.size(); q++) codes_[q] = x[rows_[part.first + q].index];
  }

  bool try_cuts(size_t column, const NodeRows& part, Random& random, Split& best) {
    load_codes(column, part);
    uint8_t low = 255, high = 0;
    for (const uint8_t code : codes_) low = std::min(low, code), high = std::max(high, code);
    if (low == high) return false;
    if (options_.random_cuts) {
      try_random_cut(column, part, low, high, random, best);
    } else {
      try_all_cuts(column, part, low, high, best);
    }
    return true;
  }

  void keep_cut(Split& best, size_t column, int32_t cut, bool any_missing) {
    best.column = static_cast<int32_t>(column), best.cut = cut;
    best.any_missing = any_missing, best.categorical = false;
    send_absent(best, most_left(), present_.present);
  }

  void try_random_cut(size_t column, const NodeRows& part, uint8_t low, uint8_t high, Random& random, Split& best) {
    int32_t cut = low + static_cast<int32_t>(random.below(static_cast<uint32_t>(high - low)));
    if (low == 0 && cut > 0 && random.below(2)) cut |= 256;
    std::fill(left_.begin(), left_.end(), 0);
    left_weight_ = 0;
    for (size_t q = 0; q < codes_.size(); q++) {
      const Row& row = rows_[part.first + q];
      const int64_t weight = row.weight & -static_cast<int32_t>(goes_left(cut, codes_[q]));
      (q & 1 ? other_ : left_)[static_cast<size_t>(row.y)] += weight;  // in turns: equal classes do not wait
      left_weight_ += weight;
    }
    for (size_t c = 0; c < left_.size(); c++) left_[c] += other_[c], other_[c] = 0;
    sum_ = 0;
    for (size_t c = 0; c < left_.size(); c++) sum_ += n_log_n(left_[c]) + n_log_n(total_[c] - left_[c]);
    if (better()) keep_cut(best, column, cut, low == 0);
  }

  // The rows by code, so that equal codes are together; a histogram would be mostly empty.
  void sort_codes() {
    sorted_.resize(codes_.size());
    for (size_t q = 0; q < codes_.size(); q++) sorted_[q] = static_cast<uint64_t>(codes_[q]) << 32 | q;
    std::sort(sorted_.begin(), sorted_.end());
  }

  void count_codes(const NodeRows& part) {
    const size_t n_classes = data_.n_classes;
    for (size_t q = 0; q < codes_.size(); q++) {
      const Row& row = rows_[part.first + q];
      counts_[codes_[q] * n_classes + static_cast<size_t>(row.y)] += row.weight;
    }
  }
  void clear_counts(size_t low, size_t high) {
    const size_t n_classes = data_.n_classes;
    std::fill(counts_.begin() + static_cast<ptrdiff_t>(low * n_classes),
              counts_.begin() + static_cast<ptrdiff_t>((high + 1) * n_classes), 0);
  }

  void try_all_cuts(size_t column, const NodeRows& part, uint8_t low, uint8_t high, Split& best) {
    const size_t n_classes = data_.n_classes, width = static_cast<size_t>(high - low) + 1;
    const bool any_missing = low == 0, few = width * n_classes > 4 * (part.last - part.first);
    if (few) {
      sort_codes();
    } else {
      count_codes(part);
    }
    for (const int32_t flag : {0, 256}) {  // missing cells left, then right
      if (flag && !any_missing) break;
      start_empty();
      if (few) {
        for (size_t q = 0; q < sorted_.size(); q++) {
          const auto code = static_cast<int32_t>(sorted_[q] >> 32);
          if (flag && code == 0) continue;
          if (code == high) break;
          const Row& row = rows_[part.first + (sorted_[q] & 0xffffffff)];
          move_left(static_cast<size_t>(row.y), row.weight);
          if (sorted_[q] >> 32 != sorted_[q + 1] >> 32 && better()) keep_cut(best, column, code | flag, any_missing);
        }
        continue;
      }
      for (size_t v = flag ? 1 : low; v < high; v++) {
        bool any = false;
        for (size_t c = 0; c < n_classes; c++) {
          const int32_t weight = counts_[v * n_classes + c];
          if (weight) move_left(c, weight), any = true;
        }
        if (any && better()) keep_cut(best, column, static_cast<int32_t>(v) | flag, any_missing);
      }
    }
    if (!few) clear_counts(low, high);
  }

  // ---- Categorical columns -------------------------------------------------------------------------------------

  bool try_levels(size_t column, const NodeRows& part, Random& random, Split& best) {
    const size_t n_classes = data_.n_classes;
    int64_t place = random.below(static_cast<uint32_t>(weight_));
    size_t reference = 0;  // a class at random; levels are sorted by its frequency
    while (place >= total_[reference]) place -= total_[reference++];
    load_codes(column, part);
    present_.clear();
    for (const uint8_t code : codes_) present_.add(code);
    present_.list(levels_);
    if (levels_.size() < 2) return false;
    count_codes(part);
    for (const size_t v : levels_) {
      int64_t n = 0;
      for (size_t c = 0; c < n_classes; c++) n += counts_[v * n_classes + c];
      const auto unit = static_cast<double>(data_.unit);
      const double share = static_cast<double>(total_[reference]) / static_cast<double>(weight_);
      rate_[v] = (static_cast<double>(counts_[v * n_classes + reference]) + unit * share) / (static_cast<double>(n) + unit);
    }
    size_t from = 0, to = levels_.size() - 1;
    if (options_.random_cuts) {
      for (size_t q = levels_.size() - 1; q > 0; q--) {
        std::swap(levels_[q], levels_[random.below(static_cast<uint32_t>(q + 1))]);
      }
      from = random.below(static_cast<uint32_t>(to));
      to = from + 1;
    } else {
      std::stable_sort(levels_.begin(), levels_.end(), [&](size_t a, size_t b) { return rate_[a] < rate_[b]; });
    }
    start_empty();
    for (size_t q = 0; q < to; q++) {
      for (size_t c = 0; c < n_classes; c++) {
        const int32_t weight = counts_[levels_[q] * n_classes + c];
        if (weight) move_left(c, weight);
      }
      if (q >= from && better()) keep_levels(best, column, q + 1);
    }
    for (const size_t v : levels_) clear_counts(v, v);
    return true;
  }

  void keep_levels(Split& best, size_t column, size_t n_left) {
    best.column = static_cast<int32_t>(column), best.categorical = true;
    std::fill(std::begin(best.left), std::end(best.left), false);
    for (size_t q = 0; q < n_left; q++) best.left[levels_[q]] = true;
    send_absent(best, most_left(), present_.present);
  }

  const GrowthRows& data_;
  const ForestOptions& options_;
  const int64_t* table_;
  ColumnDraw draw_;
  std::vector<Row> rows_, spare_;
  std::vector<int64_t> total_, left_, other_;  // of the classes: in the node, and on the left
  int64_t weight_ = 0, left_weight_ = 0, whole_ = 0, base_ = 0, gain_ = 0, sum_ = 0;
  size_t n_present_ = 0;
  std::vector<int32_t> counts_;   // (codes, classes), 0 between columns
  std::vector<uint8_t> codes_;    // of the rows of the node
  std::vector<uint64_t> sorted_;  // the code, and the place of the row in the node
  std::vector<size_t> levels_;
  CodeSet present_;
  double rate_[n_codes];
};

}  // namespace

GrownTrees grow_forest(const GrowthRows& rows, const ForestOptions& options, size_t threads) {
  std::vector<TreeInProgress> grown(options.n_trees);
  auto process = [&](TreeGrower& grower, size_t t, Order&) {
    grown[t] = grower.grow(options.first_tree + t);
    return true;
  };
  const double cells = static_cast<double>(options.n_trees) * static_cast<double>(rows.n) * 32;
  run_parts(options.n_trees, choose_threads(threads, options.n_trees, cells), 1,
            [&] { return TreeGrower(rows, options); }, process, [](TreeGrower&) {});
  return joined_trees(grown);
}

}  // namespace tallybayes
