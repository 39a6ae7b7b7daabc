#include "bind/forest_bindings.h"

#include <algorithm>

#include "bind/arrays.h"
#include "forest/trees.h"

namespace tallybayes {

namespace {

void require(bool condition) {
  if (!condition) throw nb::value_error("the rows, the trees and their counts do not fit each other");
}

template <class T>
constexpr Type type_of();
template <>
constexpr Type type_of<uint8_t>() { return Type::uint8; }
template <>
constexpr Type type_of<int32_t>() { return Type::int32; }
template <>
constexpr Type type_of<int64_t>() { return Type::int64; }
template <>
constexpr Type type_of<uint64_t>() { return Type::uint64; }
template <>
constexpr Type type_of<float>() { return Type::float32; }
template <>
constexpr Type type_of<double>() { return Type::float64; }

// A contiguous array of one axis that stays borrowed for as long as this lives.
template <class T>
class Line {
 public:
  explicit Line(nb::handle array) : borrowed_(array) { borrowed_.require({type_of<T>()}); }
  const T* data() const { return reinterpret_cast<const T*>(borrowed_.data()); }
  size_t size() const { return borrowed_.length(0); }
  const T& operator[](size_t k) const { return data()[k]; }

 private:
  Borrowed borrowed_;
};

void require_classes(const Line<int32_t>& y, size_t n_classes) {
  require(n_classes > 0 && n_classes < INT32_MAX);
  for (size_t i = 0; i < y.size(); i++) require(y[i] >= 0 && static_cast<size_t>(y[i]) < n_classes);
}

// Labeled rows with their arrays.
struct BorrowedCodedRows {
  Line<uint8_t> codes;
  Line<int32_t> y;
  Line<int64_t> weight;
  CodedRows rows;

  BorrowedCodedRows(const nb::tuple& parts, size_t n_columns) : codes(parts[0]), y(parts[1]), weight(parts[2]) {
    const auto n_classes = nb::cast<size_t>(parts[3]);
    require_classes(y, n_classes);
    require(weight.size() == y.size() && codes.size() == y.size() * n_columns);
    rows = {codes.data(), y.size(), y.data(), weight.data(), n_classes};
  }
};

nb::tuple to_parts(const GrownTrees& trees) {
  std::vector<int32_t> nodes(trees.nodes.size() * 3);
  for (size_t k = 0; k < trees.nodes.size(); k++) {
    nodes[3 * k] = trees.nodes[k].column, nodes[3 * k + 1] = trees.nodes[k].next, nodes[3 * k + 2] = trees.nodes[k].cut;
  }
  std::vector<uint8_t> masks(trees.masks.size() * 8);
  for (size_t k = 0; k < masks.size(); k++) masks[k] = static_cast<uint8_t>(trees.masks[k / 8] >> (8 * (k % 8)));
  const size_t n_nodes = trees.nodes.size(), n_masks = masks.size() / 32, n_roots = trees.roots.size();
  return nb::make_tuple(to_array(std::vector<int64_t>(trees.roots), {n_roots}), to_array(std::move(nodes), {n_nodes, 3}),
                        to_array(std::move(masks), {n_masks, 32}));
}

// tallybayes/kernels/forest.py validates the arguments; whatever could crash is checked again here.
class PythonTrees {
 public:
  PythonTrees(nb::handle roots, nb::handle nodes, nb::handle masks, size_t n_columns)
      : trees_(arrays_of(roots, nodes, masks), n_columns) {
    require(trees_.valid());
  }

  size_t n_leaves() const { return trees_.n_leaves(); }

  nb::object count_leaves(const nb::tuple& rows, size_t threads) const {
    const BorrowedCodedRows labeled(rows, trees_.n_columns);
    const size_t n_classes = labeled.rows.n_classes, n_leaves = trees_.n_leaves();
    std::vector<int64_t> counts(n_leaves * n_classes);
    {
      const nb::gil_scoped_release released;
      tallybayes::count_leaves(trees_, labeled.rows, counts.data(), threads);
    }
    return to_array(std::move(counts), {n_leaves, n_classes});
  }

  nb::object leaf_proba(nb::handle counts, size_t n_classes, nb::handle strength, double unit, size_t threads) const {
    const Line<int64_t> sums = leaf_sums<int64_t>(counts, n_classes);
    const Line<double> strengths(strength);
    require(strengths.size() == trees_.n_trees());
    const size_t n_leaves = trees_.n_leaves();
    std::vector<float> proba(n_leaves * n_classes);
    {
      const nb::gil_scoped_release released;
      tallybayes::leaf_proba(trees_, sums.data(), n_classes, strengths.data(), unit, proba.data(), threads);
    }
    return to_array(std::move(proba), {n_leaves, n_classes});
  }

  nb::object mean_of_leaves(nb::handle codes, nb::handle firsts, nb::handle leaf_values, size_t n_rows, size_t n_classes,
                            size_t threads) const {
    const Line<uint8_t> cells(codes);
    const Line<int64_t> starts = group_starts(firsts);
    const Line<float> values = leaf_sums<float>(leaf_values, n_classes);
    require(cells.size() == n_rows * trees_.n_columns);
    const size_t n_groups = starts.size() - 1;
    std::vector<double> means(n_rows * n_groups * n_classes);
    {
      const nb::gil_scoped_release released;
      tallybayes::mean_of_leaves(trees_, {starts.data(), n_groups, nullptr, 0}, cells.data(), n_rows, n_classes,
                                 values.data(), means.data(), threads);
    }
    return to_array(std::move(means), {n_rows, n_groups, n_classes});
  }

  nb::tuple held_out_proba(const nb::tuple& rows, nb::handle firsts, nb::handle counts, nb::handle strength, double unit,
                           nb::handle keys, uint64_t bag, size_t threads) const {
    const BorrowedCodedRows labeled(rows, trees_.n_columns);
    const Line<int64_t> starts = group_starts(firsts);
    const size_t n = labeled.rows.n, n_classes = labeled.rows.n_classes, n_groups = starts.size() - 1;
    const Line<int64_t> sums = leaf_sums<int64_t>(counts, n_classes);
    const Line<double> strengths(strength);
    const Line<uint64_t> names(keys);
    const size_t n_choices = strengths.size() / std::max<size_t>(1, trees_.n_trees());
    require(strengths.size() == n_choices * trees_.n_trees() && names.size() == n);
    std::vector<double> means(n * n_choices * n_groups * n_classes);
    std::vector<int32_t> n_trees(n * n_groups);
    {
      const nb::gil_scoped_release released;
      tallybayes::held_out_proba(trees_, {starts.data(), n_groups, strengths.data(), n_choices}, labeled.rows, sums.data(), unit,
                                 names.data(), bag, means.data(), n_trees.data(), threads);
    }
    return nb::make_tuple(to_array(std::move(means), {n, n_choices, n_groups, n_classes}),
                          to_array(std::move(n_trees), {n, n_groups}));
  }

  nb::tuple count_chains(const nb::tuple& rows, size_t n_chains, nb::handle scores, nb::handle base, nb::handle bag_weight,
                         size_t threads) const {
    const BorrowedCodedRows labeled(rows, trees_.n_columns);
    const size_t n_classes = labeled.rows.n_classes, n_leaves = trees_.n_leaves();
    const Chains chains(*this, n_chains, scores, base, n_classes);
    const Line<int64_t> inside(bag_weight);
    require(inside.size() == n_chains * labeled.rows.n);
    std::vector<int64_t> sums[4];
    for (auto& sum : sums) sum.resize(n_leaves * n_classes);
    {
      const nb::gil_scoped_release released;
      tallybayes::count_chains(trees_, chains.value, labeled.rows, inside.data(),
                               {sums[0].data(), sums[1].data(), sums[2].data(), sums[3].data()}, threads);
    }
    return nb::make_tuple(to_array(std::move(sums[0]), {n_leaves, n_classes}), to_array(std::move(sums[1]), {n_leaves, n_classes}),
                          to_array(std::move(sums[2]), {n_leaves, n_classes}), to_array(std::move(sums[3]), {n_leaves, n_classes}));
  }

  nb::object held_out_scores(const nb::tuple& rows, size_t n_chains, nb::handle scores, nb::handle base,
                             const nb::tuple& sums, nb::handle outside, nb::handle outside_weight, double rate,
                             double strength, double unit, size_t threads) const {
    const BorrowedCodedRows labeled(rows, trees_.n_columns);
    const size_t n = labeled.rows.n, n_classes = labeled.rows.n_classes;
    const Chains chains(*this, n_chains, scores, base, n_classes);
    require(sums.size() == 4);
    const Line<int64_t> n_in = leaf_sums<int64_t>(sums[0], n_classes), e_in = leaf_sums<int64_t>(sums[1], n_classes);
    const Line<int64_t> n_out = leaf_sums<int64_t>(sums[2], n_classes), e_out = leaf_sums<int64_t>(sums[3], n_classes);
    const Line<int32_t> chain(outside);
    const Line<double> weights(outside_weight);
    require(chain.size() == n && weights.size() % n_chains == 0);
    for (size_t i = 0; i < n; i++) require(chain[i] >= 0 && static_cast<size_t>(chain[i]) < n_chains);
    const size_t n_choices = weights.size() / n_chains;
    std::vector<float> out(n_choices * n * n_classes);
    const HeldOutChains how{chain.data(), weights.data(), n_choices, rate, strength, unit};
    // The sums are only read.
    const ChainSums counted{const_cast<int64_t*>(n_in.data()), const_cast<int64_t*>(e_in.data()),
                            const_cast<int64_t*>(n_out.data()), const_cast<int64_t*>(e_out.data())};
    {
      const nb::gil_scoped_release released;
      tallybayes::held_out_scores(trees_, chains.value, labeled.rows, counted, how, out.data(), threads);
    }
    return to_array(std::move(out), {n_choices, n, n_classes});
  }

 private:
  struct Chains {
    Line<float> scores, base;
    ChainScores value;
    Chains(const PythonTrees& trees, size_t n_chains, nb::handle leaf_scores, nb::handle first, size_t n_classes)
        : scores(trees.leaf_sums<float>(leaf_scores, n_classes)), base(first) {
      require(base.size() == n_classes && n_chains > 0 && trees.trees_.n_trees() % n_chains == 0);
      value = {n_chains, scores.data(), base.data()};
    }
  };

  static GrownTrees arrays_of(nb::handle roots, nb::handle nodes, nb::handle masks) {
    const Line<int64_t> first(roots);
    const Line<int32_t> parts(nodes);
    const Line<uint8_t> bits(masks);
    require(parts.size() % 3 == 0 && bits.size() % 32 == 0);
    GrownTrees out;
    out.roots.assign(first.data(), first.data() + first.size());
    out.nodes.resize(parts.size() / 3);
    for (size_t k = 0; k < out.nodes.size(); k++) out.nodes[k] = {parts[3 * k], parts[3 * k + 1], parts[3 * k + 2]};
    out.masks.assign(bits.size() / 8, 0);
    for (size_t k = 0; k < bits.size(); k++) out.masks[k / 8] |= static_cast<uint64_t>(bits[k]) << (8 * (k % 8));
    return out;
  }

  // Numbers for every class in every leaf.
  template <class T>
  Line<T> leaf_sums(nb::handle array, size_t n_classes) const {
    Line<T> line(array);
    require(line.size() == trees_.n_leaves() * n_classes);
    return line;
  }

  Line<int64_t> group_starts(nb::handle firsts) const {
    Line<int64_t> starts(firsts);
    require(starts.size() > 0 && starts[0] == 0 && static_cast<size_t>(starts[starts.size() - 1]) == trees_.n_trees());
    for (size_t g = 0; g + 1 < starts.size(); g++) require(starts[g] <= starts[g + 1]);
    return starts;
  }

  Trees trees_;
};

// Training rows with their arrays: codes in columns, flags of categorical columns, classes, weights, the number of
// classes, and the weight of one row.
struct BorrowedGrowthRows {
  Line<uint8_t> codes, categorical;
  Line<int32_t> y, weight;
  GrowthRows rows;

  explicit BorrowedGrowthRows(const nb::tuple& parts)
      : codes(parts[0]), categorical(parts[1]), y(parts[2]), weight(parts[3]) {
    const auto n_classes = nb::cast<size_t>(parts[4]);
    require_classes(y, n_classes);
    require(n_classes < (size_t{1} << 22) && y.size() < UINT32_MAX);
    require(weight.size() == y.size() && codes.size() == y.size() * categorical.size());
    int64_t total = 0;
    for (size_t i = 0; i < y.size(); i++) require(weight[i] > 0), total += weight[i];
    require(total < INT32_MAX);
    rows = {codes.data(), y.size(), categorical.size(), categorical.data(), y.data(), weight.data(), n_classes,
            nb::cast<int64_t>(parts[5])};
    require(rows.unit > 0);
  }
};

nb::tuple python_grow_forest(const nb::tuple& rows, size_t columns_tried, bool random_cuts, int64_t min_leaf,
                             size_t max_depth, nb::handle keys, uint64_t bag, uint64_t seed, size_t first_tree,
                             size_t n_trees, size_t threads) {
  const BorrowedGrowthRows given(rows);
  const Line<uint64_t> names(keys);
  require(names.size() == given.rows.n);
  const ForestOptions options{columns_tried, random_cuts, min_leaf, max_depth, names.data(),
                              bag, seed, first_tree, n_trees};
  GrownTrees grown;
  {
    const nb::gil_scoped_release released;
    grown = grow_forest(given.rows, options, threads);
  }
  return to_parts(grown);
}

nb::tuple python_grow_chains(const nb::tuple& rows, size_t n_chains, size_t columns_tried, size_t max_depth,
                             int64_t min_leaf, double rate, double strength, double ridge, uint64_t seed,
                             const nb::tuple& lengths, nb::handle outside, nb::handle base, nb::handle keys,
                             uint64_t bag, nb::handle weight, nb::handle bag_weight, size_t threads) {
  const BorrowedGrowthRows given(rows);
  const Line<int32_t> chain(outside);
  const Line<int64_t> weights(weight), bags(bag_weight);
  const Line<float> start(base);
  const Line<uint64_t> names(keys);
  require(names.size() == given.rows.n);
  require(chain.size() == given.rows.n && start.size() == given.rows.n_classes && n_chains > 0 && lengths.size() == 3);
  const bool summed = weights.size() > 0;
  require(!summed || (weights.size() == given.rows.n && bags.size() == n_chains * given.rows.n));
  const ChainOptions options{n_chains, columns_tried, max_depth, min_leaf, rate, strength, ridge, seed,
                             nb::cast<size_t>(lengths[0]), std::max<size_t>(1, nb::cast<size_t>(lengths[1])),
                             nb::cast<size_t>(lengths[2]), chain.data(), start.data(), names.data(), bag,
                             summed ? weights.data() : nullptr, bags.data()};
  GrownChains grown;
  {
    const nb::gil_scoped_release released;
    grown = grow_chains(given.rows, options, threads);
  }
  const size_t n_classes = given.rows.n_classes, n_leaves = grown.scores.size() / given.rows.n_classes, n_losses = grown.loss.size();
  const nb::tuple trees = to_parts(grown.trees);
  nb::list sums;
  for (std::vector<int64_t>& sum : grown.sums) {
    const size_t n_rows = sum.size() / n_classes;
    sums.append(to_array(std::move(sum), {n_rows, n_classes}));
  }
  return nb::make_tuple(trees[0], trees[1], trees[2], to_array(std::move(grown.scores), {n_leaves, n_classes}),
                        to_array(std::move(grown.loss), {n_losses}), sums);
}

}  // namespace

void define_forests(nb::module_& module) {
  nb::class_<PythonTrees>(module, "Trees")
      .def(nb::init<nb::handle, nb::handle, nb::handle, size_t>(), nb::arg("roots"), nb::arg("nodes"), nb::arg("masks"),
           nb::arg("n_columns"))
      .def_prop_ro("n_leaves", &PythonTrees::n_leaves)
      .def("count_leaves", &PythonTrees::count_leaves, nb::arg("rows"), nb::arg("threads"))
      .def("leaf_proba", &PythonTrees::leaf_proba, nb::arg("counts"), nb::arg("n_classes"), nb::arg("strength"),
           nb::arg("unit"), nb::arg("threads"))
      .def("mean_of_leaves", &PythonTrees::mean_of_leaves, nb::arg("codes"), nb::arg("firsts"), nb::arg("leaf_values"),
           nb::arg("n_rows"), nb::arg("n_classes"), nb::arg("threads"))
      .def("held_out_proba", &PythonTrees::held_out_proba, nb::arg("rows"), nb::arg("firsts"), nb::arg("counts"),
           nb::arg("strength"), nb::arg("unit"), nb::arg("keys"), nb::arg("bag"), nb::arg("threads"))
      .def("count_chains", &PythonTrees::count_chains, nb::arg("rows"), nb::arg("n_chains"), nb::arg("scores"),
           nb::arg("base"), nb::arg("bag_weight"), nb::arg("threads"))
      .def("held_out_scores", &PythonTrees::held_out_scores, nb::arg("rows"), nb::arg("n_chains"), nb::arg("scores"),
           nb::arg("base"), nb::arg("sums"), nb::arg("outside"), nb::arg("outside_weight"), nb::arg("rate"),
           nb::arg("strength"), nb::arg("unit"), nb::arg("threads"));
  module.def("grow_forest", &python_grow_forest, nb::arg("rows"), nb::arg("columns_tried"), nb::arg("random_cuts"),
             nb::arg("min_leaf"), nb::arg("max_depth"), nb::arg("keys"), nb::arg("bag"), nb::arg("seed"),
             nb::arg("first_tree"), nb::arg("n_trees"), nb::arg("threads"));
  module.def("grow_chains", &python_grow_chains, nb::arg("rows"), nb::arg("n_chains"), nb::arg("columns_tried"),
             nb::arg("max_depth"), nb::arg("min_leaf"), nb::arg("rate"), nb::arg("strength"), nb::arg("ridge"),
             nb::arg("seed"), nb::arg("lengths"), nb::arg("outside"), nb::arg("base"), nb::arg("keys"),
             nb::arg("bag"), nb::arg("weight"), nb::arg("bag_weight"), nb::arg("threads"));
}

}  // namespace tallybayes
