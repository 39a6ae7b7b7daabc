// Growing of chains of boosted trees. Gradients are rounded to integers, so that neither the order of the rows nor the
// number of threads changes a tree.
#include <cmath>

#include "core/elementary.h"
#include "core/parallel.h"
#include "forest/float_math.h"
#include "forest/tree_builder.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

constexpr double fixed = 65536.0;

int32_t to_fixed(float x) { return static_cast<int32_t>(std::floor(x * 65536.0f + 0.5f)); }

// Sums of weighted gradients and, in one word, of curvatures and weights, so that a row takes one addition of a vector.
// The weights of all rows are below 2³¹. Their curvatures are kept below 2³³: of many rows, less accurate ones.
typedef uint64_t Words __attribute__((vector_size(16)));
constexpr int weight_place = 33, exact_bits = 17;

struct Bin {
  Words words;
  int64_t gradient() const { return static_cast<int64_t>(words[0]); }
  uint64_t curvature() const { return words[1] & ((uint64_t{1} << weight_place) - 1); }
  int64_t weight() const { return static_cast<int64_t>(words[1] >> weight_place); }
};

class ChainGrower {
 public:
  ChainGrower(const GrowthRows& rows, const ChainOptions& options, const uint8_t* by_row, size_t number)
      : data_(rows), options_(options), by_row_(by_row), number_(number), random_(options.seed, number), draw_(rows.n_columns),
        score_(rows.n * rows.n_classes), proba_(rows.n * rows.n_classes), shares_(rows.n * rows.n_classes),
        bag_weight_(rows.n), leaf_(rows.n) {
    for (size_t c = 0; c < rows.n_classes; c++) std::fill_n(score_.data() + c * rows.n, rows.n, options.base[c]);
    update_proba();
    for (size_t i = 0; i < rows.n; i++) {
      bag_weight_[i] = outside(i) ? 0 : rows.weight[i];
      if (outside(i)) outside_.push_back(i);
      if (!outside(i) || sampled()) continue;
      outside_codes_.insert(outside_codes_.end(), by_row + i * rows.n_columns, by_row + (i + 1) * rows.n_columns);
    }
    int64_t total = 0;
    for (size_t i = 0; i < rows.n; i++) total += rows.weight[i];
    while (total >> exact_bits >> lost_bits_) lost_bits_++;
    inverse_ = 1.0 / (fixed * static_cast<double>(rows.unit));
  }

  void grow() {
    TreeInProgress tree;
    start_rows();
    spare_.resize(rows_.size()), spare_index_.resize(rows_.size());
    std::vector<NodeRows> open{{0, rows_.size(), 0, -1}};
    while (!open.empty()) {
      const NodeRows part = open.back();
      open.pop_back();
      Split best;
      find_split(part, best);
      const auto node = static_cast<int32_t>(tree.nodes.size());
      if (best.column < 0) {
        for (size_t q = part.first; q < part.last; q++) leaf_[index_[q]] = tree.n_leaves;
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
  std::vector<std::vector<int64_t>> sums[4];  // of each tree: of `count_chains`, (leaves, classes)

 private:
  bool sampled() const { return options_.bag < uint64_t{1} << 32; }
  bool outside(size_t i) const { return options_.outside[i] == static_cast<int32_t>(number_); }

  void update_proba() {
    chosen_tier().kernels.softmax_rows(score_.data(), data_.n, data_.n_classes, proba_.data());
    fixed_shares(proba_.data(), data_.n, data_.n_classes, shares_.data());
  }

  // Splits see one random sum of ±1 over the classes; leaves keep all classes.
  void start_rows() {
    const size_t n = data_.n, n_classes = data_.n_classes;
    sign_.assign(n_classes, 0.0f);
    for (float& sign : sign_) sign = random_.below(2) ? 1.0f : -1.0f;
    if (n_classes == 2) sign_ = {0.0f, 1.0f};
    mean_.assign(n, 0.0f), square_.assign(n, 0.0f);
    for (size_t c = 0; c < n_classes; c++) {
      const float *p = proba_.data() + c * n, sign = sign_[c], one = sign * sign;
      for (size_t i = 0; i < n; i++) mean_[i] += sign * p[i], square_[i] += one * p[i];
    }
    rows_.clear(), index_.clear();
    for (size_t i = 0; i < n; i++) {
      if (outside(i) || !in_bag(options_.keys[i], trees.size(), options_.bag)) continue;
      const float curvature = std::max(square_[i] - mean_[i] * mean_[i], 1.0f / 65536.0f);
      const int64_t weight = data_.weight[i];
      const int64_t gradient = weight * to_fixed(sign_[static_cast<size_t>(data_.y[i])] - mean_[i]);
      const auto bent = static_cast<uint64_t>(weight * to_fixed(curvature)) >> lost_bits_;
      rows_.push_back({Words{static_cast<uint64_t>(gradient), static_cast<uint64_t>(weight) << weight_place | bent}});
      index_.push_back(static_cast<uint32_t>(i));
    }
  }

  // The gain of a split as a fraction, so that few of them are divided: Σ g² / (h + ridge) over both parts.
  struct Gain {
    double above, below;
    bool exceeds(const Gain& other) const { return above * other.below > other.above * below; }
  };

  Gain gain_of(double g, double h, double other_g, double other_h) const {
    g *= inverse_, other_g *= inverse_;
    h = h * inverse_ + options_.ridge, other_h = other_h * inverse_ + options_.ridge;
    return {g * g * other_h + other_g * other_g * h, h * other_h};
  }

  double curvature_of(const Bin& bin) const { return static_cast<double>(bin.curvature() << lost_bits_); }

  void find_split(const NodeRows& part, Split& best) {
    total_ = Bin{};
    for (size_t q = part.first; q < part.last; q++) total_.words += rows_[q].words;
    if (part.depth >= options_.max_depth || total_.weight() < 2 * options_.min_leaf) return;
    const double g = static_cast<double>(total_.gradient()) * inverse_;
    const double h = curvature_of(total_) * inverse_ + options_.ridge;
    gain_ = {g * g + 1e-3 * h, h};
    draw_.restart();
    for (size_t tried = 0; !draw_.empty() && tried < options_.columns_tried;) {
      tried += try_column(draw_.draw(random_), part, best);
    }
  }

  // Several sets of bins take turns, because equal codes in a row would wait for each other.
  template <size_t sets>
  void fill_bins(const uint8_t* x, const NodeRows& part) {
    for (const size_t v : levels_) bins_[0][v] = Bin{};
    codes_.clear();
    const Bin* rows = rows_.data();
    const uint32_t* index = index_.data();
    Bin(*bins)[n_codes] = bins_;
    size_t q = part.first;
    for (; q + sets <= part.last; q += sets) {
      for (size_t s = 0; s < sets; s++) {
        const uint8_t code = x[index[q + s]];
        bins[s][code].words += rows[q + s].words;
        codes_.add(code);
      }
    }
    for (; q < part.last; q++) bins[0][x[index[q]]].words += rows[q].words, codes_.add(x[index[q]]);
    codes_.list(levels_);
    for (const size_t v : levels_) {
      for (size_t s = 1; s < sets; s++) bins[0][v].words += bins[s][v].words, bins[s][v] = Bin{};
    }
  }

  // Whether many of the rows have the code of the row before, by the first rows.
  bool repeats(const uint8_t* x, const NodeRows& part) const {
    const size_t last = std::min(part.last, part.first + 33);
    size_t n = 0;
    for (size_t q = part.first + 1; q < last; q++) n += x[index_[q]] == x[index_[q - 1]];
    return 8 * n > last - part.first;
  }

  bool is_constant(const uint8_t* x, const NodeRows& part) const {
    const uint8_t first = x[index_[part.first]];
    for (size_t q = part.first + 1; q < part.last; q++) {
      if (x[index_[q]] != first) return false;
    }
    return true;
  }

  bool try_column(size_t column, const NodeRows& part, Split& best) {
    const uint8_t* x = data_.codes + column * data_.n;
    if (is_constant(x, part)) return false;
    if (repeats(x, part)) {
      fill_bins<8>(x, part);
    } else {
      fill_bins<2>(x, part);
    }

    const bool any_missing = levels_[0] == 0;
    if (data_.categorical[column]) {
      const double spread =
          10.0 * curvature_of(total_) / static_cast<double>(total_.weight()) * static_cast<double>(data_.unit);
      for (const size_t v : levels_) {
        const Bin& bin = bins_[0][v];
        rate_[v] = static_cast<double>(bin.gradient()) / (curvature_of(bin) + spread);
      }
      std::stable_sort(levels_.begin(), levels_.end(), [&](size_t a, size_t b) { return rate_[a] < rate_[b]; });
    }
    scan(column, 0, 0, any_missing, best);
    if (!data_.categorical[column] && any_missing) scan(column, 1, 256, any_missing, best);
    return true;
  }

  // All splits of the levels in their order, from one of them on; those before go right.
  void scan(size_t column, size_t from, int32_t flag, bool any_missing, Split& best) {
    Bin left{};
    size_t found = levels_.size();
    bool most_left = false;
    const int64_t weight = total_.weight();
    for (size_t q = from; q + 1 < levels_.size(); q++) {
      left.words += bins_[0][levels_[q]].words;
      if (left.weight() < options_.min_leaf || weight - left.weight() < options_.min_leaf) continue;
      const Bin right{total_.words - left.words};
      const Gain gain = gain_of(static_cast<double>(left.gradient()), curvature_of(left),
                                static_cast<double>(right.gradient()), curvature_of(right));
      if (!gain.exceeds(gain_)) continue;
      gain_ = gain, found = q, most_left = 2 * left.weight() >= weight;
    }
    if (found == levels_.size()) return;
    best.column = static_cast<int32_t>(column);
    best.categorical = data_.categorical[column] != 0;
    best.any_missing = any_missing;
    best.cut = static_cast<int32_t>(levels_[found]) | flag;
    if (best.categorical) {
      std::fill(std::begin(best.left), std::end(best.left), false);
      for (size_t k = 0; k <= found; k++) best.left[levels_[k]] = true;
    }
    send_absent(best, most_left, codes_.present);
  }

  size_t divide(const NodeRows& part, const Split& split) {
    const uint8_t* x = data_.codes + static_cast<size_t>(split.column) * data_.n;
    size_t left = part.first, right = 0;
    for (size_t q = part.first; q < part.last; q++) {
      if (split_left(split, x[index_[q]])) {
        rows_[left] = rows_[q], index_[left++] = index_[q];
      } else {
        spare_[right] = rows_[q], spare_index_[right++] = index_[q];
      }
    }
    std::copy_n(spare_.begin(), right, rows_.begin() + static_cast<ptrdiff_t>(left));
    std::copy_n(spare_index_.begin(), right, index_.begin() + static_cast<ptrdiff_t>(left));
    return left;
  }

  // log((n + s) / (e + s)) times the rate in every leaf; then the scores of all rows, and the loss of those outside.
  void score_leaves(const TreeInProgress& tree) {
    find_other_leaves(tree);
    const size_t n = data_.n, n_classes = data_.n_classes, n_sums = static_cast<size_t>(tree.n_leaves) * n_classes;
    std::vector<int64_t> observed(n_sums, 0), expected(n_sums, 0);
    for (size_t i = 0; i < n; i++) {
      const int64_t weight = bag_weight_[i];
      if (!weight) continue;
      int64_t* sums = expected.data() + static_cast<size_t>(leaf_[i]) * n_classes;
      const int32_t* shares = shares_.data() + i * n_classes;
      if (weight == 1) {
        for (size_t c = 0; c < n_classes; c++) sums[c] += shares[c];
      } else {
        for (size_t c = 0; c < n_classes; c++) sums[c] += weight * shares[c];
      }
      observed[static_cast<size_t>(leaf_[i]) * n_classes + static_cast<size_t>(data_.y[i])] += weight;
    }
    if (options_.weight) sum_rows(n_sums);
    std::vector<float> added(n_sums);
    const auto unit = static_cast<double>(data_.unit);
    for (size_t k = 0; k < n_sums; k++) {
      const double seen = static_cast<double>(observed[k]) / unit, e = static_cast<double>(expected[k]) * inverse_;
      added[k] = static_cast<float>(options_.rate * natural_log((seen + options_.strength) / (e + options_.strength)));
    }
    for (size_t c = 0; c < n_classes; c++) {
      float* score = score_.data() + c * n;
      for (size_t i = 0; i < n; i++) score[i] += added[static_cast<size_t>(leaf_[i]) * n_classes + c];
    }
    update_proba();
    int64_t loss = 0;
    for (const size_t i : outside_) {
      const float truth = std::max(proba_[static_cast<size_t>(data_.y[i]) * n + i], 1e-12f);
      loss += int64_t{data_.weight[i]} * to_fixed(-log_of_positive(truth));
    }
    losses.push_back(loss);
    scores.push_back(std::move(added));
  }

  // The observed and expected weights in the bag and outside it, in every leaf.
  void sum_rows(size_t n_sums) {
    const size_t n_classes = data_.n_classes;
    for (auto& part : sums) part.emplace_back(n_sums, 0);
    const int64_t* inside = options_.bag_weight + number_ * data_.n;
    for (size_t i = 0; i < data_.n; i++) {
      const size_t k = static_cast<size_t>(leaf_[i]) * n_classes;
      const int64_t weights[] = {inside[i], options_.weight[i] - inside[i]};
      for (size_t part = 0; part < 2; part++) {
        if (!weights[part]) continue;
        sums[2 * part].back()[k + static_cast<size_t>(data_.y[i])] += weights[part];
        add_expected(weights[part], shares_.data() + i * n_classes, n_classes, sums[2 * part + 1].back().data() + k);
      }
    }
  }

  // Of the rows that the tree was not grown from.
  void find_other_leaves(const TreeInProgress& tree) {
    GrownTrees one;
    one.roots.push_back(static_cast<int64_t>(tree.nodes.size()));
    one.nodes = tree.nodes, one.masks = tree.masks;
    const Trees walked(one, data_.n_columns);
    const size_t step = 4096;
    const size_t n_rows = sampled() ? data_.n : outside_.size();
    const uint8_t* codes = sampled() ? by_row_ : outside_codes_.data();
    for (size_t first = 0; first < n_rows; first += step) {
      const size_t n = std::min(step, n_rows - first);
      finder_.find(walked, 0, codes + first * data_.n_columns, n);
      for (size_t k = 0; k < n; k++) {
        leaf_[sampled() ? first + k : outside_[first + k]] = static_cast<int32_t>(finder_.leaf[k]);
      }
    }
  }

  const GrowthRows& data_;
  const ChainOptions& options_;
  const uint8_t* by_row_;
  size_t number_;
  Random random_;
  ColumnDraw draw_;
  std::vector<float> score_, proba_;  // (classes, rows)
  std::vector<int32_t> shares_;       // (rows, classes): the probabilities in multiples of 2⁻¹⁶
  std::vector<float> sign_, mean_, square_;
  std::vector<int32_t> bag_weight_, leaf_;
  std::vector<size_t> outside_;
  std::vector<uint8_t> outside_codes_;
  LeafFinder finder_;
  std::vector<Bin> rows_, spare_;
  std::vector<uint32_t> index_, spare_index_;  // of the rows
  int lost_bits_ = 0;
  double inverse_;
  Gain gain_{0, 1};
  Bin total_{};
  Bin bins_[8][n_codes] = {};
  CodeSet codes_;
  std::vector<size_t> levels_;
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
      for (size_t part = 0; part < 4 && options.weight; part++) {
        std::vector<int64_t>& found = chain.sums[part][t];
        out.sums[part].insert(out.sums[part].end(), found.begin(), found.end());
        found = {};
      }
    }
  }
  out.trees = joined_trees(kept);
  for (const int64_t total : loss) out.loss.push_back(static_cast<double>(total) / (fixed * static_cast<double>(rows.unit)));
  return out;
}

}  // namespace tallybayes
