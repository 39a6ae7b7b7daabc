// Growing of chains of boosted trees. Gradients are rounded to integers, so that neither the order of the rows nor the
// number of threads changes a tree.
#include <cmath>

#include "core/elementary.h"
#include "core/parallel.h"
#include "forest/float_math.h"
#include "forest/tree_builder.h"

namespace tallybayes {

namespace {

constexpr double fixed = 65536.0;

int64_t to_fixed(float x) { return static_cast<int64_t>(std::floor(x * 65536.0f + 0.5f)); }

struct Row {
  uint32_t index;
  int32_t weight;
  int64_t gradient, curvature;
};

struct Bin {
  int64_t gradient, curvature, weight;
};

class ChainGrower {
 public:
  ChainGrower(const GrowthRows& rows, const ChainOptions& options, const uint8_t* by_row, size_t number)
      : data_(rows), options_(options), by_row_(by_row), number_(number), random_(options.seed, number),
        draw_(rows.n_columns), score_(rows.n * rows.n_classes), proba_(rows.n * rows.n_classes), leaf_(rows.n) {
    const size_t n_classes = rows.n_classes;
    for (size_t i = 0; i < rows.n; i++) {
      std::copy_n(options.base, n_classes, score_.data() + i * n_classes);
      softmax(options.base, n_classes, proba_.data() + i * n_classes);
    }
    inverse_ = 1.0 / (fixed * static_cast<double>(rows.unit));
  }

  void grow() {
    TreeInProgress tree;
    start_rows();
    spare_.resize(rows_.size());
    std::vector<NodeRows> open{{0, rows_.size(), 0, -1}};
    while (!open.empty()) {
      const NodeRows part = open.back();
      open.pop_back();
      Split best;
      find_split(part, best);
      const auto node = static_cast<int32_t>(tree.nodes.size());
      if (best.column < 0) {
        for (size_t q = part.first; q < part.last; q++) leaf_[rows_[q].index] = tree.n_leaves;
      }
      add_node(tree, part, best);
      if (best.column < 0) continue;
      const size_t middle = divide(part, best);
      open.push_back({middle, part.last, part.depth + 1, node});
      open.push_back({part.first, middle, part.depth + 1, -1});
    }
    score_leaves(tree);
    trees.push_back(std::move(tree));
  }

  std::vector<TreeInProgress> trees;
  std::vector<std::vector<float>> scores;  // of each tree, (leaves, classes)
  std::vector<int64_t> losses;             // after each tree, of the rows outside

 private:
  bool outside(size_t i) const { return options_.outside[i] == static_cast<int32_t>(number_); }

  // Splits see one random sum of ±1 over the classes; leaves keep all classes.
  void start_rows() {
    const size_t n_classes = data_.n_classes;
    sign_.assign(n_classes, 0.0f);
    for (float& sign : sign_) sign = random_.below(2) ? 1.0f : -1.0f;
    if (n_classes == 2) sign_ = {0.0f, 1.0f};
    rows_.clear();
    for (size_t i = 0; i < data_.n; i++) {
      if (outside(i)) continue;
      const float* p = proba_.data() + i * n_classes;
      float mean = 0, square = 0;
      for (size_t c = 0; c < n_classes; c++) mean += sign_[c] * p[c], square += (sign_[c] * sign_[c]) * p[c];
      const float curvature = std::max(square - mean * mean, 1.0f / 65536.0f);
      const int64_t weight = data_.weight[i];
      rows_.push_back({static_cast<uint32_t>(i), data_.weight[i],
                       weight * to_fixed(sign_[static_cast<size_t>(data_.y[i])] - mean), weight * to_fixed(curvature)});
    }
  }

  double gain_of(int64_t gradient, int64_t curvature) const {
    const double g = static_cast<double>(gradient) * inverse_, h = static_cast<double>(curvature) * inverse_;
    return g * g / (h + options_.ridge);
  }

  void find_split(const NodeRows& part, Split& best) {
    total_ = {0, 0, 0};
    for (size_t q = part.first; q < part.last; q++) add(total_, rows_[q]);
    if (part.depth >= options_.max_depth || total_.weight < 2 * options_.min_leaf) return;
    gain_ = gain_of(total_.gradient, total_.curvature) + 1e-3;
    draw_.restart();
    for (size_t tried = 0; !draw_.empty() && tried < options_.columns_tried;) {
      tried += try_column(draw_.draw(random_), part, best);
    }
  }

  static void add(Bin& bin, const Row& row) {
    bin.gradient += row.gradient, bin.curvature += row.curvature, bin.weight += row.weight;
  }
  static void add(Bin& bin, const Bin& other) {
    bin.gradient += other.gradient, bin.curvature += other.curvature, bin.weight += other.weight;
  }

  bool try_column(size_t column, const NodeRows& part, Split& best) {
    const uint8_t* x = data_.codes + column * data_.n;
    for (const size_t v : levels_) bins_[v] = {0, 0, 0}, present_[v] = false;
    levels_.clear();
    for (size_t q = part.first; q < part.last; q++) {
      const uint8_t v = x[rows_[q].index];
      add(bins_[v], rows_[q]);
      if (!present_[v]) levels_.push_back(v), present_[v] = true;
    }
    if (levels_.size() < 2) return false;
    sort_levels();
    if (data_.categorical[column]) {
      const double spread = 10.0 * static_cast<double>(total_.curvature) / static_cast<double>(total_.weight) *
                            static_cast<double>(data_.unit);
      for (const size_t v : levels_) {
        rate_[v] = static_cast<double>(bins_[v].gradient) / (static_cast<double>(bins_[v].curvature) + spread);
      }
      std::stable_sort(levels_.begin(), levels_.end(), [&](size_t a, size_t b) { return rate_[a] < rate_[b]; });
      scan(column, 0, 0, best);
    } else {
      scan(column, 0, 0, best);
      if (levels_[0] == 0) scan(column, 1, 256, best);
    }
    return true;
  }

  // In ascending order.
  void sort_levels() {
    if (levels_.size() < 32) return std::sort(levels_.begin(), levels_.end());
    levels_.clear();
    for (size_t v = 0; v < n_codes; v++) {
      if (present_[v]) levels_.push_back(v);
    }
  }

  // All splits of the levels in their order, from one of them on; those before go right.
  void scan(size_t column, size_t from, int32_t flag, Split& best) {
    Bin left{0, 0, 0};
    const bool categorical = data_.categorical[column] != 0;
    for (size_t q = from; q + 1 < levels_.size(); q++) {
      add(left, bins_[levels_[q]]);
      if (left.weight < options_.min_leaf || total_.weight - left.weight < options_.min_leaf) continue;
      const double gain = gain_of(left.gradient, left.curvature) +
                          gain_of(total_.gradient - left.gradient, total_.curvature - left.curvature);
      if (!(gain > gain_)) continue;
      gain_ = gain;
      best.column = static_cast<int32_t>(column);
      best.categorical = categorical;
      best.any_missing = levels_[0] == 0;
      best.cut = static_cast<int32_t>(levels_[q]) | flag;
      if (categorical) {
        std::fill(std::begin(best.left), std::end(best.left), false);
        for (size_t k = 0; k <= q; k++) best.left[levels_[k]] = true;
      }
      send_absent(best, 2 * left.weight >= total_.weight, present_);
    }
  }

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

  // log((n + s) / (e + s)) times the rate in every leaf; then the scores of all rows, and the loss of those outside.
  void score_leaves(const TreeInProgress& tree) {
    const size_t n_classes = data_.n_classes, n_sums = static_cast<size_t>(tree.n_leaves) * n_classes;
    std::vector<int64_t> observed(n_sums, 0), expected(n_sums, 0);
    for (size_t i = 0; i < data_.n; i++) {
      if (outside(i)) {
        leaf_[i] = outside_leaf(tree, i);
        continue;
      }
      const size_t first = static_cast<size_t>(leaf_[i]) * n_classes;
      observed[first + static_cast<size_t>(data_.y[i])] += data_.weight[i];
      const float* p = proba_.data() + i * n_classes;
      for (size_t c = 0; c < n_classes; c++) expected[first + c] += data_.weight[i] * to_fixed(p[c]);
    }
    std::vector<float> added(n_sums);
    const auto unit = static_cast<double>(data_.unit);
    for (size_t k = 0; k < n_sums; k++) {
      const double n = static_cast<double>(observed[k]) / unit, e = static_cast<double>(expected[k]) * inverse_;
      added[k] = static_cast<float>(options_.rate * natural_log((n + options_.strength) / (e + options_.strength)));
    }
    int64_t loss = 0;
    for (size_t i = 0; i < data_.n; i++) {
      float *score = score_.data() + i * n_classes, *p = proba_.data() + i * n_classes;
      const float* more = added.data() + static_cast<size_t>(leaf_[i]) * n_classes;
      for (size_t c = 0; c < n_classes; c++) score[c] += more[c];
      softmax(score, n_classes, p);
      if (!outside(i)) continue;
      const float truth = std::max(p[static_cast<size_t>(data_.y[i])], 1e-12f);
      loss += data_.weight[i] * to_fixed(-log_of_positive(truth));
    }
    losses.push_back(loss);
    scores.push_back(std::move(added));
  }

  int32_t outside_leaf(const TreeInProgress& tree, size_t i) const {
    const TreeNode* node = tree.nodes.data();
    while (node->column >= 0) {
      const uint8_t code = by_row_[i * data_.n_columns + static_cast<size_t>(node->column)];
      const bool left = node->cut >= 0 ? goes_left(node->cut, code)
                                       : tree.masks[4 * static_cast<size_t>(~node->cut) + (code >> 6)] >> (code & 63) & 1;
      node = left ? node + 1 : tree.nodes.data() + node->next;
    }
    return node->next;
  }

  const GrowthRows& data_;
  const ChainOptions& options_;
  const uint8_t* by_row_;
  size_t number_;
  Random random_;
  ColumnDraw draw_;
  std::vector<float> score_, proba_, sign_;
  std::vector<int32_t> leaf_;
  std::vector<Row> rows_, spare_;
  double inverse_, gain_ = 0;
  Bin total_{0, 0, 0};
  Bin bins_[n_codes] = {};
  std::vector<size_t> levels_;
  bool present_[n_codes] = {};
  double rate_[n_codes];
};

std::vector<uint8_t> transposed(const GrowthRows& rows) {
  std::vector<uint8_t> out(rows.n * rows.n_columns);
  for (size_t first = 0; first < rows.n; first += 256) {
    const size_t last = std::min(rows.n, first + 256);
    for (size_t j = 0; j < rows.n_columns; j++) {
      for (size_t i = first; i < last; i++) out[i * rows.n_columns + j] = rows.codes[j * rows.n + i];
    }
  }
  return out;
}

}  // namespace

GrownChains grow_chains(const GrowthRows& rows, const ChainOptions& options, size_t threads) {
  const std::vector<uint8_t> by_row = transposed(rows);
  std::vector<ChainGrower> chains;
  chains.reserve(options.n_chains);
  for (size_t m = 0; m < options.n_chains; m++) chains.emplace_back(rows, options, by_row.data(), m);
  std::vector<int64_t> loss;
  size_t best = 0;
  const double cells = static_cast<double>(options.step) * static_cast<double>(rows.n) * 64;
  while (loss.size() < options.most_trees && (loss.empty() || best + options.patience + 1 >= loss.size())) {
    const size_t n_more = std::min(options.step, options.most_trees - loss.size());
    auto process = [&](size_t&, size_t m, Order&) {
      for (size_t t = 0; t < n_more; t++) chains[m].grow();
      return true;
    };
    run_parts(options.n_chains, choose_threads(threads, options.n_chains, cells), 1, [] { return size_t{0}; }, process,
              [](size_t&) {});
    for (size_t t = 0; t < n_more; t++) {
      int64_t total = 0;
      for (const ChainGrower& chain : chains) total += chain.losses[loss.size()];
      loss.push_back(total);
      if (total < loss[best]) best = loss.size() - 1;
    }
  }
  GrownChains out;
  std::vector<TreeInProgress> kept;
  for (ChainGrower& chain : chains) {
    for (size_t t = 0; t <= best && !loss.empty(); t++) {
      kept.push_back(std::move(chain.trees[t]));
      out.scores.insert(out.scores.end(), chain.scores[t].begin(), chain.scores[t].end());
    }
  }
  out.trees = joined_trees(kept);
  for (const int64_t total : loss) out.loss.push_back(static_cast<double>(total) / (fixed * static_cast<double>(rows.unit)));
  return out;
}

}  // namespace tallybayes
