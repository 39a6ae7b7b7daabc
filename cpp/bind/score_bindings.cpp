#include "bind/score_bindings.h"

#include <nanobind/stl/string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.h"
#include "score/score.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

Check check_of(const std::string& name) {
  if (name == "binary") return Check::binary;
  if (name == "count") return Check::count;
  if (name == "finite") return Check::finite;
  if (name == "nonnegative") return Check::nonnegative;
  throw nb::value_error("unknown check");
}

// The numbers of a contiguous float64 array of shape (n, n_classes).
struct Numbers {
  Borrowed borrowed;
  const double* data;
  size_t n;

  Numbers(nb::handle array, size_t n_classes) : borrowed(array) {
    const Table table = borrowed.table();
    const bool gapless = table.row_stride == static_cast<ptrdiff_t>(n_classes * sizeof(double));
    const bool usable = table.n_rows == 0 || (table.row_major() && gapless && table.aligned());
    if (table.type != Type::float64 || table.n_columns != n_classes || !usable) {
      throw nb::value_error("expected contiguous float64 tables with a column for every class");
    }
    data = reinterpret_cast<const double*>(table.data);
    n = table.n_rows;
  }
  Vector vector(size_t n_classes) const { return Vector(data, data + n * n_classes); }
};

// A contiguous float64 array of one axis.
Vector line_of(nb::handle array) {
  const Borrowed borrowed(array);
  const auto* numbers = reinterpret_cast<const double*>(borrowed.require({Type::float64}).data());
  return Vector(numbers, numbers + borrowed.length(0));
}

// Memory for a result. Large results use huge pages: clearing and mapping small pages takes as long as scoring.
template <class T>
struct Result {
  T* values;
  nb::capsule owner;

  explicit Result(size_t n) : values(allocate(std::max<size_t>(1, n) * sizeof(T))) {
    owner = nb::capsule(values, [](void* p) noexcept { std::free(p); });
  }
  static T* allocate(size_t n_bytes) {
    void* memory = nullptr;
#if defined(__linux__)
    constexpr size_t large_page = size_t{1} << 21;
    if (n_bytes >= 2 * large_page) {
      if (posix_memalign(&memory, large_page, n_bytes) != 0) memory = nullptr;
      if (memory) madvise(memory, n_bytes, MADV_HUGEPAGE);
    }
#endif
    if (!memory) memory = std::malloc(n_bytes);
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
};

// Output arrays allocated by the caller.
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// tallybayes/kernels/scoring.py validates the arguments; whatever could crash is checked again here.
class PythonScorer {
 public:
  PythonScorer(nb::handle start, nb::list factors) {
    const Borrowed borrowed(start);
    const auto* numbers = reinterpret_cast<const double*>(borrowed.require({Type::float64}).data());
    const size_t n_classes = borrowed.length(0);
    if (n_classes == 0) throw nb::value_error("expected at least one class");
    scorer_.emplace(*chosen_tier().score, Vector(numbers, numbers + n_classes));
    for (nb::handle factor : factors) add(nb::cast<nb::tuple>(factor), n_classes);
  }

  nb::object joint(nb::handle blocks, size_t n_rows, size_t threads) const {
    const size_t n_classes = scorer_->n_classes();
    const Inputs inputs = borrow(blocks, n_rows);
    if (n_rows > PTRDIFF_MAX / sizeof(double) / n_classes) throw std::bad_alloc();
    const Result<double> result(n_rows * n_classes);
    Scores scores;
    scores.joint = result.values;
    run(inputs, {n_rows, nullptr}, threads, scores);
    return nb::ndarray<nb::numpy, double>(result.values, {n_rows, n_classes}, result.owner).cast();
  }

  nb::object argmax(nb::handle blocks, size_t n_rows, size_t threads) {
    scorer_->prepare_guesses();
    const Inputs inputs = borrow(blocks, n_rows);
    if (n_rows > PTRDIFF_MAX / sizeof(int64_t)) throw std::bad_alloc();
    const Result<int64_t> result(n_rows);
    Scores scores;
    scores.best = result.values;
    run(inputs, {n_rows, nullptr}, threads, scores);
    return nb::ndarray<nb::numpy, int64_t>(result.values, {n_rows}, result.owner).cast();
  }

  // `rows`: None or int64 row numbers; the results are written into the given arrays of n_rows rows.
  void posterior(nb::handle blocks, size_t n_rows, nb::handle log_prior, nb::handle rows, Matrix log_proba,
                 Line log_density, size_t threads) const {
    const size_t n_classes = scorer_->n_classes();
    const Inputs inputs = borrow(blocks, n_rows);
    const bool fits = log_proba.shape(0) == n_rows && log_proba.shape(1) == n_classes && log_density.shape(0) == n_rows;
    if (!fits) throw nb::value_error("expected results with a row for every row and a column for every class");
    const Borrowed prior(log_prior);
    Scores scores;
    scores.log_prior = reinterpret_cast<const double*>(prior.require({Type::float64}).data());
    if (prior.length(0) != n_classes) throw nb::value_error("expected a prior with a number for every class");
    scores.posterior = log_proba.data();
    scores.density = log_density.data();
    if (rows.is_none()) return run(inputs, {n_rows, nullptr}, threads, scores);
    const Borrowed chosen(rows);
    const auto* numbers = reinterpret_cast<const int64_t*>(chosen.require({Type::int64}).data());
    for (size_t i = 0; i < chosen.length(0); i++) {
      if (static_cast<uint64_t>(numbers[i]) >= n_rows) throw nb::index_error("expected rows that exist");
    }
    run(inputs, {chosen.length(0), numbers}, threads, scores);
  }

  // As `posterior`, with every row scored by the scorer of its part.
  static void posterior_by_part(nb::list scorers, nb::handle blocks, size_t n_rows, nb::handle part,
                                nb::handle log_prior, Matrix log_proba, Line log_density, size_t threads) {
    std::vector<const PythonScorer*> given;
    for (nb::handle scorer : scorers) given.push_back(nb::cast<const PythonScorer*>(scorer));
    if (given.empty()) throw nb::value_error("expected at least one scorer");
    const size_t n_classes = given[0]->scorer_->n_classes();
    const Numbers prior(log_prior, n_classes);
    const Borrowed codes(part);
    const auto* part_of = reinterpret_cast<const int32_t*>(codes.require({Type::int32}).data());
    const bool fits = log_proba.shape(0) == n_rows && log_proba.shape(1) == n_classes &&
                      log_density.shape(0) == n_rows && codes.length(0) == n_rows && prior.n == given.size();
    if (!fits) throw nb::value_error("expected a part and a result for every row, and a prior for every scorer");
    for (size_t i = 0; i < n_rows; i++) {
      if (part_of[i] < -1 || part_of[i] >= static_cast<int64_t>(given.size())) {
        throw nb::index_error("expected parts that have a scorer, or -1");
      }
    }
    const Inputs inputs = given[0]->borrow(blocks, n_rows);
    std::vector<const Scorer*> all;
    std::vector<Scores> out(given.size());
    for (size_t s = 0; s < given.size(); s++) {
      if (!given[s]->scorer_->reads_like(*given[0]->scorer_)) throw nb::value_error("expected scorers of one shape");
      all.push_back(&*given[s]->scorer_);
      out[s].posterior = log_proba.data();
      out[s].density = log_density.data();
      out[s].log_prior = prior.data + s * n_classes;
    }
    bool good;
    {
      const nb::gil_scoped_release released;
      good = score_by_part(all, inputs.blocks, n_rows, part_of, threads, out);
    }
    if (good) return;
    for (size_t s = 0; s < given.size(); s++) {  // the first part with a value that its scorer does not allow
      std::vector<int64_t> rows;
      for (size_t i = 0; i < n_rows; i++) {
        if (part_of[i] == static_cast<int32_t>(s)) rows.push_back(static_cast<int64_t>(i));
      }
      given[s]->run(inputs, {rows.size(), rows.data()}, 1, out[s]);
    }
  }

 private:
  // A block with its buffers.
  struct BorrowedBlock {
    BorrowedTable table;
    std::vector<Borrowed> sparse;
  };
  struct Inputs {
    std::vector<BorrowedBlock> borrowed;
    std::vector<ScoreBlock> blocks;
  };

  void add(const nb::tuple& factor, size_t n_classes) {
    const auto kind = nb::cast<std::string>(factor[0]);
    auto numbers = [&](size_t position) { return Numbers(factor[position], n_classes); };
    if (kind == "codes") {
      const Borrowed sizes(factor[1]);
      const auto* size = reinterpret_cast<const int64_t*>(sizes.require({Type::int64}).data());
      const Numbers table = numbers(2);
      size_t total = 0;
      for (size_t j = 0; j < sizes.length(0); j++) {
        if (size[j] < 0 || size[j] >= INT32_MAX) throw nb::value_error("expected sizes from 0 to 2147483646");
        total += static_cast<size_t>(size[j]);
      }
      if (total != table.n) throw nb::value_error("expected a row of the table for every code");
      scorer_->add_codes(size, sizes.length(0), table.data, nb::cast<std::string>(factor[3]) == "error");
    } else if (kind == "linear") {
      const Numbers weight = numbers(1), bias = numbers(2);
      require_same(weight.n == bias.n);
      scorer_->add_dense(FactorKind::linear, check_of(nb::cast<std::string>(factor[3])), weight.n,
                         {weight.vector(n_classes)}, bias.data);
    } else if (kind == "normal") {
      const Numbers mean = numbers(1), precision = numbers(2), log_norm = numbers(3);
      require_same(mean.n == precision.n && mean.n == log_norm.n);
      scorer_->add_dense(FactorKind::normal, Check::finite, mean.n,
                         {mean.vector(n_classes), precision.vector(n_classes)}, log_norm.data);
    } else if (kind == "student") {
      const Numbers mean = numbers(1), inverse_spread = numbers(2), power = numbers(3), log_norm = numbers(4);
      require_same(mean.n == inverse_spread.n && mean.n == power.n && mean.n == log_norm.n);
      scorer_->add_dense(FactorKind::student, Check::finite, mean.n,
                         {mean.vector(n_classes), inverse_spread.vector(n_classes), power.vector(n_classes)},
                         log_norm.data);
    } else if (kind == "left_out") {
      const auto of_class = nb::cast<size_t>(factor[1]);
      const Vector mean = line_of(factor[2]), inverse_spread = line_of(factor[3]), power = line_of(factor[4]),
                   log_norm = line_of(factor[5]);
      const size_t n = mean.size();
      require_same(n == inverse_spread.size() && n == power.size() && n == log_norm.size());
      if (of_class >= n_classes) throw nb::value_error("expected one of the classes");
      scorer_->add_left_out(of_class, {mean, inverse_spread, power}, log_norm.data());
    } else if (kind == "terms") {
      scorer_->add_terms();
    } else if (kind == "sparse") {
      const Numbers weight = numbers(1);
      scorer_->add_sparse(weight.n, weight.data, check_of(nb::cast<std::string>(factor[2])));
    } else {
      throw nb::value_error("unknown kind of factor");
    }
  }

  static void require_same(bool same) {
    if (!same) throw nb::value_error("expected tables with the same number of columns");
  }

  [[noreturn]] static void raise_wrong_rows(size_t block, size_t found, size_t n_rows) {
    const std::string text = "blocks[" + std::to_string(block) + "] has " + std::to_string(found) + " rows, expected " +
                             std::to_string(n_rows);
    throw nb::value_error(text.c_str());
  }

  static void borrow_sparse(nb::handle given, size_t f, size_t n_columns, size_t n_rows, BorrowedBlock& borrowed,
                            ScoreBlock& block) {
    const bool three = nb::isinstance<nb::tuple>(given) && nb::len(given) == 3;
    if (!three) throw nb::type_error("expected a tuple (indptr, indices, data) for a sparse factor");
    for (nb::handle array : nb::borrow<nb::tuple>(given)) borrowed.sparse.emplace_back(array);
    const Borrowed &pointers = borrowed.sparse[0], &positions = borrowed.sparse[1], &values = borrowed.sparse[2];
    pointers.require({Type::int32, Type::int64});
    positions.require({Type::int32, Type::int64});
    values.require({values.type()});
    if (pointers.length(0) == 0) throw nb::value_error("indptr is empty, expected one entry more than there are rows");
    if (positions.length(0) != values.length(0)) throw nb::value_error("indices and data differ in length");
    if (pointers.length(0) - 1 != n_rows) raise_wrong_rows(f, pointers.length(0) - 1, n_rows);
    block.sparse = {pointers.column(), positions.column(), values.column(), n_rows, values.length(0), n_columns};
  }

  static void borrow_dense(nb::handle given, size_t f, const ScoreFactor& factor, size_t n_rows,
                           BorrowedBlock& borrowed, ScoreBlock& block) {
    borrowed.table = borrow_table(given, n_rows);
    const Table& table = borrowed.table.table;
    if (table.n_rows != n_rows) raise_wrong_rows(f, table.n_rows, n_rows);
    if (table.n_columns != factor.n_columns) {
      const std::string text = "blocks[" + std::to_string(f) + "] has " + std::to_string(table.n_columns) +
                               " columns, expected " + std::to_string(factor.n_columns);
      throw nb::value_error(text.c_str());
    }
    if (factor.kind == FactorKind::terms) {
      if (table.type != Type::float64 || !(table.n_rows == 0 || table.row_major())) {
        throw nb::type_error("expected terms as float64 with the classes of a row next to each other");
      }
    }
    if (factor.kind == FactorKind::codes) {
      for (size_t j = 0; j < (table.separate ? table.n_columns : 1); j++) {
        if ((table.separate ? table.columns[j].type : table.type) >= Type::float32) {
          throw nb::type_error("expected integer codes");
        }
      }
    }
    block.table = table;
  }

  Inputs borrow(nb::handle given, size_t n_rows) const {
    const std::vector<ScoreFactor>& factors = scorer_->factors();
    if (static_cast<size_t>(nb::len(given)) != factors.size()) {
      throw nb::value_error("expected a block of data for every factor");
    }
    Inputs inputs;
    inputs.borrowed = std::vector<BorrowedBlock>(factors.size());
    inputs.blocks.resize(factors.size());
    for (size_t f = 0; f < factors.size(); f++) {
      const nb::object block = given[f];
      if (factors[f].kind == FactorKind::sparse) {
        borrow_sparse(block, f, factors[f].n_columns, n_rows, inputs.borrowed[f], inputs.blocks[f]);
      } else {
        borrow_dense(block, f, factors[f], n_rows, inputs.borrowed[f], inputs.blocks[f]);
      }
    }
    return inputs;
  }

  void run(const Inputs& inputs, const Chosen& chosen, size_t threads, const Scores& scores) const {
    InvalidValue invalid_value;
    bool good;
    {
      const nb::gil_scoped_release released;
      good = scorer_->score(inputs.blocks, chosen, threads, scores);
      if (!good) invalid_value = find_invalid_value(*scorer_, inputs.blocks, chosen);
    }
    if (!good) raise(invalid_value, inputs.blocks[invalid_value.factor]);
  }

  [[noreturn]] static void raise(const InvalidValue& invalid_value, const ScoreBlock& block) {
    const std::string row = std::to_string(invalid_value.row), found = std::to_string(invalid_value.found);
    std::string text;
    if (invalid_value.what == InvalidValue::What::extent) {
      text = "indptr gives row " + row + " the entries " + found + " to " + std::to_string(invalid_value.stop) +
             ", expected a rising range within 0 to " + std::to_string(block.sparse.n_entries);
      throw nb::index_error(text.c_str());
    }
    if (invalid_value.what == InvalidValue::What::index) {
      text = "row " + row + " has column index " + found + ", expected 0 to " +
             std::to_string(static_cast<int64_t>(block.sparse.n_columns) - 1);
      throw nb::index_error(text.c_str());
    }
    const nb::object error =
        nb::module_::import_("tallybayes.errors").attr("CellError")(invalid_value.row, invalid_value.column);
    nb::setattr(error, "factor", nb::cast(invalid_value.factor));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
  }

  std::optional<Scorer> scorer_;
};

nb::tuple python_column_ranges(nb::handle columns, size_t threads) {
  const BorrowedTable borrowed = borrow_table(columns, 0);
  const Table& table = borrowed.table;
  for (size_t j = 0; j < (table.separate ? table.n_columns : 1); j++) {
    if ((table.separate ? table.columns[j].type : table.type) >= Type::float32) {
      throw nb::type_error("expected integer columns");
    }
  }
  std::vector<int64_t> low, high;
  bool good;
  {
    const nb::gil_scoped_release released;
    good = column_ranges(*chosen_tier().score, table, threads, low, high);
  }
  if (!good) {
    PyErr_SetString(PyExc_OverflowError, "a column holds a number above 9223372036854775807, the largest int64");
    throw nb::python_error();
  }
  const size_t n = table.n_columns;
  return nb::make_tuple(to_array(std::move(low), {n}), to_array(std::move(high), {n}));
}

nb::object python_score_pairs(nb::handle columns, nb::handle sizes, nb::handle table, size_t n_classes, size_t threads) {
  const BorrowedTable borrowed = borrow_table(columns, 0);
  const Borrowed numbers(sizes), panels(table);
  const size_t d = borrowed.table.n_columns, pitch = (n_classes + panel_classes - 1) / panel_classes * panel_classes;
  const auto* levels = reinterpret_cast<const int64_t*>(numbers.require({Type::int64}).data());
  std::vector<uint32_t> size, offset;
  size_t n_levels = 0;
  for (size_t j = 0; j < numbers.length(0); j++) {
    if (levels[j] < 1 || levels[j] > INT32_MAX) throw nb::value_error("expected at least one level in every column");
    size.push_back(static_cast<uint32_t>(levels[j]));
    offset.push_back(static_cast<uint32_t>((n_levels + 1) * pitch));
    n_levels += size.back();
    if ((n_levels + 1) * pitch > UINT32_MAX) throw nb::value_error("the table of pairs has too many cells");
  }
  panels.require({Type::float64});
  if (d != size.size() || d == 0 || panels.length(0) != n_levels * (n_levels + 1) * pitch) {
    throw nb::value_error("expected the sizes of all columns, and a panel for every level");
  }
  const PairTable pairs{reinterpret_cast<const double*>(panels.data()), d, n_levels, pitch, size.data(), offset.data()};
  Vector scores;
  {
    const nb::gil_scoped_release released;
    scores = score_pairs(*chosen_tier().score, borrowed.table, pairs, n_classes, threads);
  }
  return to_array(std::move(scores), {borrowed.table.n_rows, n_classes});
}

nb::object python_sum_tempered(nb::handle scores, nb::handle truth, nb::handle base, nb::handle weights,
                               size_t n_classes, double sharpness, double doubt) {
  const Borrowed cells(scores), true_scores(truth), base_rates(base), times(weights);
  const auto doubles = [](const Borrowed& array) {
    return reinterpret_cast<const double*>(array.require({Type::float64}).data());
  };
  const size_t n = true_scores.length(0);
  if (n % 8 || base_rates.length(0) != n || times.length(0) != n || cells.length(0) != n * n_classes) {
    throw nb::value_error("expected as many rows in every part, a multiple of eight");
  }
  const TemperedRows rows{doubles(cells), doubles(true_scores), doubles(base_rates), doubles(times), n, n_classes};
  Vector sums(tempered_sums);
  {
    const nb::gil_scoped_release released;
    chosen_tier().score->sum_tempered(rows, sharpness, doubt, sums.data());
  }
  return to_array(std::move(sums), {tempered_sums});
}

}  // namespace

void define_scoring(nb::module_& module) {
  nb::set_leak_warnings(false);  // a scorer may exist until the interpreter exits
  nb::class_<PythonScorer>(module, "Scorer")
      .def(nb::init<nb::handle, nb::list>(), nb::arg("start"), nb::arg("factors"))
      .def("joint", &PythonScorer::joint, nb::arg("blocks"), nb::arg("n_rows"), nb::arg("threads"))
      .def("argmax", &PythonScorer::argmax, nb::arg("blocks"), nb::arg("n_rows"), nb::arg("threads"))
      .def("posterior", &PythonScorer::posterior, nb::arg("blocks"), nb::arg("n_rows"), nb::arg("log_prior"),
           nb::arg("rows").none(), nb::arg("log_proba"), nb::arg("log_density"), nb::arg("threads"));
  module.def("posterior_by_part", &PythonScorer::posterior_by_part, nb::arg("scorers"), nb::arg("blocks"),
             nb::arg("n_rows"), nb::arg("part"), nb::arg("log_prior"), nb::arg("log_proba"), nb::arg("log_density"),
             nb::arg("threads"));
  module.def("score_pairs", &python_score_pairs, nb::arg("columns"), nb::arg("sizes"), nb::arg("table"),
             nb::arg("n_classes"), nb::arg("threads"));
  module.def("sum_tempered", &python_sum_tempered, nb::arg("scores"), nb::arg("truth"), nb::arg("base"),
             nb::arg("weights"), nb::arg("n_classes"), nb::arg("sharpness"), nb::arg("doubt"));
  module.def("column_ranges", &python_column_ranges, nb::arg("columns"), nb::arg("threads"));
}

}  // namespace tallybayes
