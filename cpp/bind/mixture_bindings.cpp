#include "bind/mixture_bindings.h"

#include <cmath>
#include <memory>

#include "bind/arrays.h"
#include "mixture/mixture.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

void require(bool condition) {
  if (!condition) throw nb::value_error("the blocks, the priors and the parameters do not fit each other");
}

Vector numbers(nb::handle array, size_t n) {
  const Borrowed borrowed(array);
  const auto* data = reinterpret_cast<const double*>(borrowed.require({Type::float64}).data());
  require(borrowed.length(0) == n);
  return Vector(data, data + n);
}

// tallybayes/estimation/em/compiled_em.py makes the arguments; whatever could crash is checked here.
class PythonMixture {
 public:
  PythonMixture(size_t n_rows, size_t n_classes, const nb::list& gaussians, const nb::list& codes, nb::handle weights,
                nb::handle labels, size_t threads)
      : em_(chosen_tier().kernels, *chosen_tier().score) {
    require(n_classes > 0 && n_classes < (size_t{1} << 32));
    em_.n_rows = n_rows;
    em_.n_classes = n_classes;
    em_.threads = threads;
    buffers_.reserve(2);
    tables_.reserve(nb::len(gaussians) + nb::len(codes));
    for (nb::handle item : gaussians) add_gaussian(nb::cast<nb::tuple>(item));
    for (nb::handle item : codes) add_codes(nb::cast<nb::tuple>(item));
    em_.weights = reinterpret_cast<const double*>(line(weights, Type::float64));
    em_.labels = reinterpret_cast<const int64_t*>(line(labels, Type::int64));
    for (size_t i = 0; em_.labels && i < n_rows; i++) require(em_.labels[i] < static_cast<int64_t>(n_classes));
    em_.classes.pseudo.assign(n_classes, 0.0);
    em_.classes.log_prior.assign(n_classes, -std::log(static_cast<double>(n_classes)));
  }

  PythonMixture(const PythonMixture&) = delete;
  PythonMixture& operator=(const PythonMixture&) = delete;

  void set_priors(const nb::list& gaussians, const nb::list& codes, nb::handle pseudo,
                  nb::handle log_prior) {
    require(nb::len(gaussians) == em_.gaussians.size() && nb::len(codes) == em_.codes.size());
    const size_t n = em_.n_classes;
    for (size_t b = 0; b < em_.gaussians.size(); b++) {
      GaussianBlock& block = em_.gaussians[b];
      const auto prior = nb::cast<nb::tuple>(gaussians[b]);
      require(nb::len(prior) == 5);
      const size_t d = block.n_columns(), rows = block.tied_classes ? 1 : n;
      const size_t columns = block.full || block.tied_columns ? 1 : d;
      block.has_prior = nb::cast<bool>(prior[0]);
      block.location = numbers(prior[1], n * d);
      for (size_t cell = 0; cell < n * d; cell++) block.location[cell] -= block.center[cell % d];
      block.strength = numbers(prior[2], n * d);
      block.rows = numbers(prior[3], rows * columns);
      block.scale = numbers(prior[4], rows * (block.full ? d * d : columns));
    }
    for (size_t b = 0; b < em_.codes.size(); b++) {
      em_.codes[b].pseudo = numbers(codes[b], n * em_.codes[b].n_levels());
    }
    em_.classes.pseudo = numbers(pseudo, n);
    em_.classes.fixed = !log_prior.is_none();
    if (em_.classes.fixed) em_.classes.log_prior = numbers(log_prior, n);
    has_priors_ = true;
  }

  bool expect(nb::handle log_prior, const nb::list& gaussians, const nb::list& codes, bool hard) {
    require(nb::len(gaussians) == em_.gaussians.size() && nb::len(codes) == em_.codes.size());
    const size_t n = em_.n_classes;
    MixtureParameters given{numbers(log_prior, n), {}, {}, {}};
    for (size_t b = 0; b < em_.gaussians.size(); b++) {
      const GaussianBlock& block = em_.gaussians[b];
      const auto pair = nb::cast<nb::tuple>(gaussians[b]);
      require(nb::len(pair) == 2);
      given.mean.push_back(numbers(pair[0], n * block.n_columns()));
      for (size_t cell = 0; cell < given.mean.back().size(); cell++) {
        given.mean.back()[cell] -= block.center[cell % block.n_columns()];
      }
      given.spread.push_back(numbers(pair[1], n * block.width()));
    }
    for (size_t b = 0; b < em_.codes.size(); b++) {
      given.probability.push_back(numbers(codes[b], n * em_.codes[b].n_levels()));
    }
    const nb::gil_scoped_release released;
    has_sums_ = em_.set_parameters(given) && em_.expect(hard);
    return has_sums_;
  }

  nb::tuple iterate(size_t max_iter, double tol, nb::callable before) {
    require(has_priors_ && has_sums_);
    MixtureRun run;
    bool failed = false;
    {
      const nb::gil_scoped_release released;
      run = em_.iterate(max_iter, tol, [&] {
        const nb::gil_scoped_acquire held;
        // A Python error must not pass through code without the lock: it is raised below.
        PyObject* result = PyObject_CallNoArgs(before.ptr());
        failed = result == nullptr || PyErr_CheckSignals() != 0;
        Py_XDECREF(result);
        return !failed;
      });
    }
    if (failed) throw nb::python_error();
    has_sums_ = run.good;
    const size_t n_steps = run.history.size();
    return nb::make_tuple(run.good, run.converged, to_array(std::move(run.history), {n_steps}));
  }

  nb::tuple parameters() const {
    MixtureParameters found = em_.parameters();
    const size_t n = em_.n_classes;
    nb::list gaussians, codes;
    for (size_t b = 0; b < em_.gaussians.size(); b++) {
      const GaussianBlock& block = em_.gaussians[b];
      const size_t d = block.n_columns();
      for (size_t cell = 0; cell < n * d; cell++) found.mean[b][cell] += block.center[cell % d];
      gaussians.append(nb::make_tuple(to_array(std::move(found.mean[b]), {n, d}),
                                      block.full ? to_array(std::move(found.spread[b]), {n, d, d})
                                                 : to_array(std::move(found.spread[b]), {n, d})));
    }
    for (size_t b = 0; b < em_.codes.size(); b++) {
      codes.append(to_array(std::move(found.probability[b]), {n, em_.codes[b].n_levels()}));
    }
    return nb::make_tuple(to_array(std::move(found.log_prior), {n}), gaussians, codes);
  }

  nb::tuple sums() const {
    require(has_sums_);
    const size_t n = em_.n_classes;
    nb::list gaussians, codes;
    for (size_t b = 0; b < em_.gaussians.size(); b++) {
      const GaussianBlock& block = em_.gaussians[b];
      const size_t d = block.n_columns();
      GaussianSums found = em_.gaussian_sums(b);
      gaussians.append(nb::make_tuple(to_array(std::move(found.weight), {n, found.any_missing ? d : 1}),
                                      to_array(std::move(found.about), {n, d}),
                                      to_array(std::move(found.first), {n, d}),
                                      block.full ? to_array(std::move(found.second), {n, d, d})
                                                 : to_array(std::move(found.second), {n, d})));
    }
    for (size_t b = 0; b < em_.codes.size(); b++) {
      codes.append(to_array(em_.code_sums(b), {n, em_.codes[b].n_levels()}));
    }
    return nb::make_tuple(to_array(Vector(em_.class_weights(), em_.class_weights() + n), {n}), gaussians, codes);
  }

  nb::tuple values() const {
    require(has_sums_);
    return nb::make_tuple(em_.log_likelihood(), em_.entropy(), has_priors_ ? em_.log_prior() : 0.0);
  }

 private:
  const Table& table(nb::handle columns) {
    tables_.push_back(borrow_table(columns, em_.n_rows));
    require(tables_.back().table.n_rows == em_.n_rows);
    return tables_.back().table;
  }
  Bytes line(nb::handle array, Type type) {
    if (array.is_none()) return nullptr;
    const Borrowed& borrowed = buffers_.emplace_back(array);
    require(borrowed.require({type}).length(0) == em_.n_rows);
    return borrowed.data();
  }
  void add_gaussian(const nb::tuple& item) {
    require(nb::len(item) == 6);
    GaussianBlock block;
    block.table = table(item[0]);
    const size_t d = block.n_columns(), n = em_.n_classes;
    block.full = nb::cast<bool>(item[1]);
    block.tied_classes = nb::cast<bool>(item[2]);
    block.tied_columns = nb::cast<bool>(item[3]);
    require(d > 0 && !(block.full && block.tied_columns));
    block.center = numbers(item[4], d);
    block.least = numbers(item[5], d);
    block.mean.assign(n * d, 0.0);
    block.spread.assign(n * block.width(), 0.0);
    em_.gaussians.push_back(std::move(block));
  }
  void add_codes(const nb::tuple& item) {
    require(nb::len(item) == 2);
    CodeBlock block;
    block.table = table(item[0]);
    const Borrowed sizes(item[1]);
    const auto* size = reinterpret_cast<const int64_t*>(sizes.require({Type::int64}).data());
    require(sizes.length(0) == block.table.n_columns);
    for (size_t j = 0; j < block.table.n_columns; j++) {
      require(size[j] >= 0 && size[j] < INT32_MAX && block.table.column(j).type < Type::float32);
      block.sizes.push_back(static_cast<uint32_t>(size[j]));
    }
    block.probability.assign(em_.n_classes * block.n_levels(), 0.0);
    em_.codes.push_back(std::move(block));
  }

  std::vector<Borrowed> buffers_;
  std::vector<BorrowedTable> tables_;
  MixtureEM em_;
  bool has_priors_ = false, has_sums_ = false;
};

}  // namespace

void define_mixtures(nb::module_& module) {
  nb::class_<PythonMixture>(module, "MixtureEM")
      .def(nb::init<size_t, size_t, const nb::list&, const nb::list&, nb::handle, nb::handle, size_t>(),
           nb::arg("n_rows"), nb::arg("n_classes"), nb::arg("gaussians"), nb::arg("codes"), nb::arg("weights").none(),
           nb::arg("labels").none(), nb::arg("threads"))
      .def("set_priors", &PythonMixture::set_priors, nb::arg("gaussians"), nb::arg("codes"), nb::arg("pseudo"),
           nb::arg("log_prior").none())
      .def("expect", &PythonMixture::expect, nb::arg("log_prior"), nb::arg("gaussians"), nb::arg("codes"),
           nb::arg("hard"))
      .def("iterate", &PythonMixture::iterate, nb::arg("max_iter"), nb::arg("tol"), nb::arg("before"))
      .def("parameters", &PythonMixture::parameters)
      .def("sums", &PythonMixture::sums)
      .def("values", &PythonMixture::values);
}

}  // namespace tallybayes
