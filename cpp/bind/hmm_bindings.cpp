#include "bind/hmm_bindings.h"

#include <cmath>
#include <string>

#include "bind/arrays.h"
#include "hmm/hmm.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

// Output arrays allocated by the caller.
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Lines = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Paths = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Path = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// tallybayes/kernels/hmm_arguments.py validates the arguments; whatever could crash is checked again here.
class Sequences {
 public:
  ChainInput input;

  Sequences(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission, nb::handle offsets) {
    buffers_.reserve(7);
    input.start = line(start, Type::float64);
    input.n_states = buffers_.back().length(0);
    const size_t n = input.n_states;
    if (n == 0) throw nb::value_error("expected at least one state");
    input.transition = matrix(transition);
    require(buffers_.back().length(0) == n);
    if (!end.is_none()) {
      input.end = line(end, Type::float64);
      require(buffers_.back().length(0) == n);
    }
    size_t n_steps;
    if (nb::isinstance<nb::tuple>(emission)) {
      const nb::tuple pair = nb::borrow<nb::tuple>(emission);
      require(nb::len(pair) == 2);
      input.codes = buffers_.emplace_back(pair[0]).column();
      if (input.codes.type >= Type::float32) throw nb::type_error("expected integer codes");
      n_steps = buffers_.back().length(0);
      input.table = matrix(pair[1]);
      input.n_levels = buffers_.back().length(0);
      require(input.n_levels < INT32_MAX);
    } else {
      input.emission = matrix(emission);
      n_steps = buffers_.back().length(0);
    }
    input.offsets = reinterpret_cast<const int64_t*>(line(offsets, Type::int64));
    require(buffers_.back().length(0) > 0);
    input.n_sequences = buffers_.back().length(0) - 1;
    require(input.offsets[0] == 0 && static_cast<size_t>(input.offsets[input.n_sequences]) == n_steps);
    for (size_t k = 0; k < input.n_sequences; k++) require(input.offsets[k] <= input.offsets[k + 1]);
  }

  void weigh(nb::handle weight) {
    if (weight.is_none()) return;
    input.weight = line(weight, Type::float64);
    require(buffers_.back().length(0) == input.n_sequences);
  }

  template <class Work>
  void run(Work work) const {
    bool good;
    {
      const nb::gil_scoped_release released;
      good = work(*chosen_tier().chain);
    }
    if (!good) raise_invalid();
  }

  static void require(bool condition) {
    if (!condition) throw nb::value_error("the model, the sequences and the room for results do not fit each other");
  }

 private:
  const double* line(nb::handle array, Type type) {
    return reinterpret_cast<const double*>(buffers_.emplace_back(array).require({type}).data());
  }
  // Contiguous float64 with one column per state.
  const double* matrix(nb::handle array) {
    const Table table = buffers_.emplace_back(array).table();
    const bool gapless = table.row_stride == static_cast<ptrdiff_t>(input.n_states * sizeof(double));
    const bool usable = table.n_rows == 0 || (table.row_major() && (gapless || table.n_rows == 1) && table.aligned());
    require(table.type == Type::float64 && table.n_columns == input.n_states && usable);
    return reinterpret_cast<const double*>(table.data);
  }

  [[noreturn]] void raise_invalid() const {
    const size_t n = input.n_states, n_steps = input.n_steps();
    if (input.coded()) {
      const uint64_t limit = code_limit(input.codes.type, input.n_levels), missing = missing_code(input.codes.type);
      for (size_t t = 0; t < n_steps; t++) {
        const uint64_t code = code_at(input.codes, t);
        if (code < limit || code == missing) continue;
        const std::string found = is_signed(input.codes.type)
                                      ? std::to_string(static_cast<int64_t>(cell_at(input.codes, t)))
                                      : std::to_string(code);
        const std::string last = std::to_string(static_cast<int64_t>(input.n_levels) - 1);
        const std::string text = "step " + std::to_string(t) + " has code " + found + ", expected 0 to " + last +
                                 ", or -1 where it is missing";
        throw nb::index_error(text.c_str());
      }
    } else {
      for (size_t k = 0; k < n_steps * n; k++) {
        const double x = input.emission[k];
        if (x < INFINITY) continue;
        const std::string text = "emission holds " + std::string(std::isnan(x) ? "nan" : "inf") + " at step " +
                                 std::to_string(k / n) + ", state " + std::to_string(k % n) +
                                 "; expected logarithms: numbers or -inf";
        throw nb::value_error(text.c_str());
      }
    }
    throw nb::value_error("an emission is invalid");
  }

  std::vector<Borrowed> buffers_;
};

void python_log_likelihood(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission,
                           nb::handle offsets, Line log_likelihood, size_t threads) {
  const Sequences sequences(start, transition, end, emission, offsets);
  const ChainInput& input = sequences.input;
  Sequences::require(log_likelihood.shape(0) == input.n_sequences);
  sequences.run([&](const ChainKernels& kernels) {
    return chain_log_likelihood(kernels, input, threads, log_likelihood.data());
  });
}

void python_viterbi(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission, nb::handle offsets,
                    Path path, Line score, size_t threads) {
  const Sequences sequences(start, transition, end, emission, offsets);
  const ChainInput& input = sequences.input;
  Sequences::require(score.shape(0) == input.n_sequences && path.shape(0) == input.n_steps());
  sequences.run([&](const ChainKernels& kernels) {
    return chain_best_path(kernels, input, threads, path.data(), score.data());
  });
}

void python_best_paths(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission,
                       nb::handle offsets, Paths paths, Matrix score, size_t threads) {
  const Sequences sequences(start, transition, end, emission, offsets);
  const ChainInput& input = sequences.input;
  const size_t n_paths = score.shape(1);
  Sequences::require(score.shape(0) == input.n_sequences && paths.shape(0) == input.n_steps() &&
                     paths.shape(1) == n_paths && n_paths > 0 && n_paths <= UINT32_MAX / input.n_states);
  sequences.run([&](const ChainKernels& kernels) {
    return chain_best_paths(kernels, input, threads, n_paths, paths.data(), score.data());
  });
}

void python_draw_paths(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission,
                       nb::handle offsets, Lines uniform, Paths paths, Line log_likelihood, size_t threads) {
  const Sequences sequences(start, transition, end, emission, offsets);
  const ChainInput& input = sequences.input;
  Sequences::require(log_likelihood.shape(0) == input.n_sequences && uniform.shape(0) == input.n_steps() &&
                     paths.shape(0) == input.n_steps() && uniform.shape(1) == paths.shape(1));
  sequences.run([&](const ChainKernels& kernels) {
    return chain_draw_paths(kernels, input, threads, paths.shape(1), uniform.data(), paths.data(),
                            log_likelihood.data());
  });
}

using Driver = bool (*)(const ChainKernels&, const ChainInput&, size_t, double*, double*);

template <Driver driver>
void python_rows(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission, nb::handle offsets,
                 Matrix rows, Line log_likelihood, size_t threads) {
  const Sequences sequences(start, transition, end, emission, offsets);
  const ChainInput& input = sequences.input;
  Sequences::require(log_likelihood.shape(0) == input.n_sequences && rows.shape(0) == input.n_steps() &&
                     rows.shape(1) == input.n_states);
  sequences.run([&](const ChainKernels& kernels) {
    return driver(kernels, input, threads, rows.data(), log_likelihood.data());
  });
}

// `rows`: (steps, states), or for codes (levels, states).
nb::tuple python_expected(nb::handle start, nb::handle transition, nb::handle end, nb::handle emission,
                          nb::handle offsets, nb::handle weight, Matrix rows, Line log_likelihood, size_t threads) {
  Sequences sequences(start, transition, end, emission, offsets);
  sequences.weigh(weight);
  const ChainInput& input = sequences.input;
  const size_t n = input.n_states;
  const bool coded = input.coded();
  Sequences::require(log_likelihood.shape(0) == input.n_sequences && rows.shape(1) == n &&
                     rows.shape(0) == (coded ? input.n_levels : input.n_steps()));
  ChainSums sums;
  sequences.run([&](const ChainKernels& kernels) {
    return chain_expected(kernels, input, threads, coded ? nullptr : rows.data(), sums, log_likelihood.data());
  });
  if (coded) std::copy(sums.levels.begin(), sums.levels.end(), rows.data());
  return nb::make_tuple(to_array(std::move(sums.start), {n}), to_array(std::move(sums.transition), {n, n}),
                        to_array(std::move(sums.end), {n}));
}

}  // namespace

void define_chains(nb::module_& module) {
  module.def("chain_log_likelihood", &python_log_likelihood, nb::arg("start"), nb::arg("transition"),
             nb::arg("end").none(), nb::arg("emission"), nb::arg("offsets"), nb::arg("log_likelihood"),
             nb::arg("threads"));
  module.def("chain_viterbi", &python_viterbi, nb::arg("start"), nb::arg("transition"), nb::arg("end").none(),
             nb::arg("emission"), nb::arg("offsets"), nb::arg("path"), nb::arg("score"), nb::arg("threads"));
  module.def("chain_best_paths", &python_best_paths, nb::arg("start"), nb::arg("transition"), nb::arg("end").none(),
             nb::arg("emission"), nb::arg("offsets"), nb::arg("paths"), nb::arg("score"), nb::arg("threads"));
  module.def("chain_draw_paths", &python_draw_paths, nb::arg("start"), nb::arg("transition"), nb::arg("end").none(),
             nb::arg("emission"), nb::arg("offsets"), nb::arg("uniform"), nb::arg("paths"),
             nb::arg("log_likelihood"), nb::arg("threads"));
  module.def("chain_filter", &python_rows<chain_filter>, nb::arg("start"), nb::arg("transition"),
             nb::arg("end").none(), nb::arg("emission"), nb::arg("offsets"), nb::arg("rows"),
             nb::arg("log_likelihood"), nb::arg("threads"));
  module.def("chain_posterior", &python_rows<chain_posterior>, nb::arg("start"), nb::arg("transition"),
             nb::arg("end").none(), nb::arg("emission"), nb::arg("offsets"), nb::arg("rows"),
             nb::arg("log_likelihood"), nb::arg("threads"));
  module.def("chain_expected", &python_expected, nb::arg("start"), nb::arg("transition"), nb::arg("end").none(),
             nb::arg("emission"), nb::arg("offsets"), nb::arg("weight").none(), nb::arg("rows"),
             nb::arg("log_likelihood"), nb::arg("threads"));
}

}  // namespace tallybayes
