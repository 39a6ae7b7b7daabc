#include "bind/incomplete_rows_bindings.h"

#include <optional>

#include "bind/arrays.h"
#include "network/incomplete_rows.h"

namespace tallybayes {

namespace {

constexpr double most_cells = 1e12;  // of the cliques of a component; more would not fit into memory
constexpr int64_t most_table = int64_t{1} << 48;

void require(bool condition) {
  if (!condition) throw nb::value_error("the rows, the tables and their factors do not fit each other");
}

template <class T>
std::pair<const T*, size_t> line(std::vector<Borrowed>& buffers, nb::handle array, Type type) {
  const Borrowed& borrowed = buffers.emplace_back(array).require({type});
  return {reinterpret_cast<const T*>(borrowed.data()), borrowed.length(0)};
}

// tallybayes/kernels/incomplete_rows.py validates the arguments; whatever could crash is checked again here.
class PythonPartlyKnown {
 public:
  PythonPartlyKnown(nb::handle codes, nb::handle sizes, nb::handle members, nb::handle ends, nb::handle by_row,
                    nb::handle sums_to_one, nb::handle order, nb::handle kept, nb::handle weight) {
    std::vector<Borrowed> buffers;
    buffers.reserve(9);
    PartlyKnownInput input;
    const auto [levels, d] = line<int64_t>(buffers, sizes, Type::int64);
    require(d > 0 && d < INT32_MAX);
    for (size_t j = 0; j < d; j++) {
      require(levels[j] >= 1 && levels[j] < INT32_MAX);
      input.sizes.push_back(static_cast<uint32_t>(levels[j]));
    }
    const auto [cells, n_codes] = line<int32_t>(buffers, codes, Type::int32);
    require(n_codes % d == 0 && n_codes / d < UINT32_MAX);
    input.codes = cells;
    input.n_rows = n_codes / d;
    for (size_t row = 0; row < input.n_rows; row++) {
      for (size_t j = 0; j < d; j++) require(cells[row * d + j] >= -1 && cells[row * d + j] < levels[j]);
    }
    if (!weight.is_none()) {
      const auto [weights, n] = line<double>(buffers, weight, Type::float64);
      require(n == input.n_rows);
      input.weights = weights;
    }
    const auto [places, n_places] = line<int64_t>(buffers, order, Type::int64);
    require(n_places == d);
    input.when.assign(d, UINT32_MAX);
    for (size_t k = 0; k < d; k++) {
      require(places[k] >= 0 && static_cast<size_t>(places[k]) < d);
      uint32_t& when = input.when[static_cast<size_t>(places[k])];
      require(when == UINT32_MAX);
      when = static_cast<uint32_t>(k);
    }
    const auto [keep, n_kept] = line<uint8_t>(buffers, kept, Type::uint8);
    require(n_kept == d);
    input.kept.assign(keep, keep + d);
    read_factors(input, buffers, members, ends, by_row, sums_to_one);
    const nb::gil_scoped_release released;
    rows_.emplace(std::move(input));
  }

  double cells() const { return rows_->most_cells(); }
  size_t instances() const { return rows_->n_instances(); }

  nb::tuple expect(nb::handle tables, nb::handle logs, size_t threads) const {
    const Numbers given(*rows_, tables, logs);
    Vector counts(rows_->n_cells());
    double value;
    {
      const nb::gil_scoped_release released;
      value = rows_->expect(given.tables, given.logs, counts.data(), threads);
    }
    const size_t n = counts.size();
    return nb::make_tuple(to_array(std::move(counts), {n}), value);
  }

  // Posteriors of all requested variables, concatenated, each (rows, levels).
  nb::tuple answer(nb::handle tables, nb::handle logs, nb::handle requested, size_t threads) const {
    const Numbers given(*rows_, tables, logs);
    std::vector<Borrowed> buffers;
    buffers.reserve(1);
    const auto [flags, d] = line<uint8_t>(buffers, requested, Type::uint8);
    require(d == rows_->sizes().size());
    size_t n_posteriors = 0;
    for (size_t j = 0; j < d; j++) n_posteriors += flags[j] ? rows_->n_rows() * rows_->sizes()[j] : 0;
    Vector posteriors(n_posteriors), log_likelihood(rows_->n_rows());
    std::vector<double*> room(d, nullptr);
    double* next = posteriors.data();
    for (size_t j = 0; j < d; j++) {
      if (!flags[j]) continue;
      room[j] = next;
      next += rows_->n_rows() * rows_->sizes()[j];
    }
    {
      const nb::gil_scoped_release released;
      rows_->answer(given.tables, given.logs, log_likelihood.data(), room, threads);
    }
    const size_t n = rows_->n_rows();
    return nb::make_tuple(to_array(std::move(posteriors), {n_posteriors}), to_array(std::move(log_likelihood), {n}));
  }

 private:
  struct Numbers {
    std::vector<Borrowed> buffers;
    const double *tables, *logs;
    Numbers(const PartlyKnown& rows, nb::handle linear, nb::handle logarithmic) {
      require(rows.most_cells() <= most_cells);
      buffers.reserve(2);
      const auto [first, n] = line<double>(buffers, linear, Type::float64);
      const auto [second, n_logs] = line<double>(buffers, logarithmic, Type::float64);
      require(n == rows.n_cells() && n_logs == n);
      tables = first;
      logs = second;
    }
  };

  static void read_factors(PartlyKnownInput& input, std::vector<Borrowed>& buffers, nb::handle members, nb::handle ends,
                           nb::handle by_row, nb::handle sums_to_one) {
    const size_t d = input.sizes.size();
    const auto [places, n_places] = line<int64_t>(buffers, members, Type::int64);
    const auto [stops, n_factors] = line<int64_t>(buffers, ends, Type::int64);
    const auto [own, n_own] = line<uint8_t>(buffers, by_row, Type::uint8);
    const auto [normal, n_normal] = line<int64_t>(buffers, sums_to_one, Type::int64);
    require(n_own == n_factors && n_normal == n_factors);
    int64_t first = 0, offset = 0;
    std::vector<uint8_t> seen(d, 0);
    for (size_t f = 0; f < n_factors; f++) {
      TableFactor factor;
      require(stops[f] > first && static_cast<size_t>(stops[f]) <= n_places);
      require(f == 0 || own[f] >= own[f - 1]);  // factors with a table per row come last
      for (int64_t k = first; k < stops[f]; k++) {
        require(places[k] >= 0 && static_cast<size_t>(places[k]) < d);
        const auto place = static_cast<uint32_t>(places[k]);
        for (const uint32_t other : factor.members) require(other != place);
        factor.members.push_back(place);
        seen[place] = 1;
      }
      factor.strides.resize(factor.members.size());
      for (size_t k = factor.members.size(); k-- > 0;) {
        factor.strides[k] = factor.n_cells;
        factor.n_cells *= input.sizes[factor.members[k]];
        require(factor.n_cells < most_table);
      }
      require(normal[f] >= -1 && normal[f] < static_cast<int64_t>(d));
      factor.sums_to_one = normal[f];
      factor.by_row = own[f] != 0;
      factor.offset = offset;
      const auto n_tables = static_cast<int64_t>(factor.by_row ? input.n_rows : 1);
      require(n_tables < most_table / factor.n_cells);
      offset += factor.n_cells * n_tables;
      require(offset < most_table);
      first = stops[f];
      input.factors.push_back(std::move(factor));
    }
    require(static_cast<size_t>(first) == n_places);
    for (const uint8_t some : seen) require(some != 0);
  }

  std::optional<PartlyKnown> rows_;
};

}  // namespace

void define_partly_known(nb::module_& module) {
  nb::class_<PythonPartlyKnown>(module, "PartlyKnown")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                    nb::handle>(),
           nb::arg("codes"), nb::arg("sizes"), nb::arg("members"), nb::arg("ends"), nb::arg("by_row"),
           nb::arg("sums_to_one"), nb::arg("order"), nb::arg("kept"), nb::arg("weight").none())
      .def_prop_ro("cells", &PythonPartlyKnown::cells)
      .def_prop_ro("instances", &PythonPartlyKnown::instances)
      .def("expect", &PythonPartlyKnown::expect, nb::arg("tables"), nb::arg("logs"), nb::arg("threads"))
      .def("answer", &PythonPartlyKnown::answer, nb::arg("tables"), nb::arg("logs"), nb::arg("asked"),
           nb::arg("threads"));
}

}  // namespace tallybayes
