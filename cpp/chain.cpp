#include "chain.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "chain_model.h"
#include "elementary.h"
#include "parallel.h"

namespace tallybayes {

const ChainKernels& chain_kernels_of(const char* tier) {
#if defined(TALLYBAYES_TIERS)
  if (std::strcmp(tier, "v4") == 0) return v4::chain_kernels;
  if (std::strcmp(tier, "v3") == 0) return v3::chain_kernels;
  return v2::chain_kernels;
#else
  (void)tier;
  return native::chain_kernels;
#endif
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log_two = 0.69314718055994530942;
constexpr size_t block_steps = 64;  // whose products of states and beliefs are added up together
const uint32_t no_code = 0;         // where rows are those of the steps

enum class Goal { likelihood, filter, posterior, expected };
enum class Trust : uint8_t { full, doubt, none };

struct Results {
  double* log_likelihood;  // one for each sequence
  double* rows = nullptr;  // one for each step
};

// The sums of one part. Transitions come as products, still to be multiplied by the probabilities of the moves, from
// the fast loops, and complete from those on logarithms.
struct PartSums {
  Aligned<double> start, end, products, moves, levels;
  void clear(size_t n_states, size_t pitch, size_t n_levels) {
    for (Aligned<double>* sums : {&start, &end}) sums->resize(pitch);
    for (Aligned<double>* sums : {&products, &moves}) sums->resize(n_states * pitch);
    levels.resize((n_levels + 1) * pitch);
  }
};

class Worker {
 public:
  Worker(const ChainKernels& kernels, const ChainModel& model, Goal goal, const Results& results)
      : kernels_(kernels), model_(model), goal_(goal), results_(results), n_states_(model.input.n_states),
        pitch_(model.pitch), most_streams_(model.most_streams()) {
    const bool coded = model.input.coded();
    stride_ = {coded ? 1 : 0, coded ? 0 : static_cast<ptrdiff_t>(pitch_), goal != Goal::likelihood};
  }

  // The sequences from first to last; false where an emission is refused.
  bool process(size_t first, size_t last) {
    while (first < last) {
      batch_ = next_batch(model_, first, last, most_streams_);
      first = batch_.last;
      if (!load()) return false;
      forward();
      if (goal_ != Goal::filter) certify();
      if (goal_ == Goal::filter) share();
      if (goal_ == Goal::posterior || goal_ == Goal::expected) backward();
      for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
        if (trust(sequence) == Trust::none) use_logarithms(sequence);
      }
    }
    return true;
  }

  PartSums sums;

 private:
  Trust& trust(size_t sequence) { return trust_[sequence - batch_.first]; }
  double& total(size_t sequence) { return totals_[sequence - batch_.first]; }
  size_t step_of(size_t sequence) const { return model_.first_step(sequence) - batch_.first_step; }
  double* result_row(size_t sequence) const { return results_.rows + model_.first_step(sequence) * n_states_; }

  // Those sequences of the batch take turns that have steps and are wanted.
  template <class Wanted, class Begin, class Advance, class Finish>
  void run(Odd odd, Wanted wanted, Begin begin, Advance advance, Finish finish) {
    size_t sequence = batch_.first;
    auto next = [&] {
      while (sequence < batch_.last && !(model_.length(sequence) > 0 && wanted(sequence))) sequence++;
      return sequence < batch_.last ? sequence++ : no_sequence;
    };
    take_turns(model_, batch_.n_streams, block_steps, odd, next, begin, advance, finish);
  }

  bool load() {
    const size_t n = batch_.n_steps, n_sequences = batch_.last - batch_.first;
    trust_.assign(n_sequences, Trust::full);
    totals_.assign(n_sequences, 0.0);
    scales_.of(n / chain_interval + 1);
    if (stride_.keep) states_.of(n * pitch_);
    const ChainInput& input = model_.input;
    if (input.coded()) {
      return kernels_.load_levels(input.codes, batch_.first_step, n, static_cast<uint32_t>(input.n_levels),
                                  codes_.of(n));
    }
    maxima_.of(n);
    rows_.of(n * pitch_);
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      const size_t at = step_of(sequence);
      bool tiny = false;
      const double* given = input.emission + model_.first_step(sequence) * n_states_;
      if (!kernels_.exp_rows(given, model_.length(sequence), n_states_, rows_.data() + at * pitch_, pitch_,
                             maxima_.data() + at, tiny)) {
        return false;
      }
      if (tiny && !model_.every_move) trust(sequence) = Trust::doubt;
    }
    return true;
  }

  // Lets a stream stand at a step of a sequence.
  void place(ChainStream& stream, size_t sequence, size_t step) {
    const size_t at = step_of(sequence) + step;
    const bool coded = model_.input.coded();
    stream.codes = coded ? codes_.data() + at : &no_code;
    stream.rows = coded ? model_.table.plain.data() : rows_.data() + at * pitch_;
    stream.scale = scales_.data() + step_of(sequence) / chain_interval + step / chain_interval;
    stream.state_stride = stride_.keep ? static_cast<ptrdiff_t>(pitch_) : 0;
    if (stride_.keep) stream.state = states_.data() + at * pitch_;
  }

  void forward() {
    const bool watch = !model_.every_move;
    double* pairs = stride_.keep ? nullptr : pairs_.of(most_streams_ * 2 * pitch_);
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      place(stream, turn.sequence, 0);
      if (!stride_.keep) {
        stream.state = pairs + turn.slot * 2 * pitch_;
        stream.state_stride = static_cast<ptrdiff_t>(pitch_);
      }
      const double *start = model_.start.plain.data(), *row = stream.rows + *stream.codes * pitch_;
      for (size_t j = 0; j < pitch_; j++) {
        stream.state[j] = start[j] * row[j];
        stream.watched[0] |= static_cast<uint64_t>(stream.state[j] > 0.0 && stream.state[j] < chain_tiny);
      }
    };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      kernels_.forward(model_.plain, stride_, watch, streams, n, n_steps);
    };
    auto finish = [&](const ChainTurn& turn, const ChainStream& stream) { judge(turn.sequence, stream); };
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (model_.length(sequence) == 0) results_.log_likelihood[sequence] = 0.0;
    }
    run(Odd::last, [](size_t) { return true; }, begin, advance, finish);
  }

  // Adds up the likelihood, and how far it is to be trusted.
  void judge(size_t sequence, const ChainStream& stream) {
    const size_t n = model_.length(sequence);
    double sum = 0.0;
    for (size_t j = 0; j < n_states_; j++) sum += stream.state[j] * model_.end.plain.data()[j];
    const size_t n_scales = (n - 1) / chain_interval;
    int64_t powers = 0, largest = 0;  // the scales' exponents, 1023 too large
    for (size_t k = 0; k < n_scales; k++) {
      int64_t bits;
      std::memcpy(&bits, stream.scale - k - 1, sizeof(bits));
      powers += bits >> 52;
      largest = std::max(largest, bits >> 52);
    }
    constexpr int64_t too_large = 1023 + 332;  // 1 / chain_tiny
    bool watched = false;
    for (const uint64_t bits : stream.watched) watched |= bits != 0;
    if (!(sum >= chain_tiny) || largest > too_large) {
      trust(sequence) = Trust::none;
    } else if (!model_.every_move && (watched || !model_.clear)) {
      trust(sequence) = Trust::doubt;
    }
    total(sequence) = sum;
    const auto moves = static_cast<double>(n - 1);
    const double exponent = 1023.0 * static_cast<double>(n_scales) - static_cast<double>(powers);
    const double shift = model_.start_shift + moves * model_.transition_shift + model_.end_shift;
    results_.log_likelihood[sequence] = (shift + emission_shift(sequence)) + (exponent * log_two + natural_log(sum));
  }

  // What was taken out of the emissions of a sequence.
  double emission_shift(size_t sequence) {
    const size_t n = model_.length(sequence), at = step_of(sequence);
    if (!model_.input.coded()) return careful_sum(n, [&](size_t t) { return maxima_.data()[at + t]; });
    if (model_.level_shifts.empty()) return 0.0;
    return careful_sum(n, [&](size_t t) { return model_.level_shifts[codes_.data()[at + t]]; });
  }

  // At the last step: what the end says of every state, so that states times beliefs add up to `weight`.
  void set_beliefs(const ChainTurn& turn, ChainStream& stream, double weight) {
    place(stream, turn.sequence, model_.length(turn.sequence) - 1);
    stream.belief = beliefs_.data() + turn.slot * pitch_;
    stream.products = products_.data() + turn.slot * block_steps * pitch_;
    const double share = weight / total(turn.sequence);
    for (size_t j = 0; j < pitch_; j++) stream.belief[j] = model_.end.plain.data()[j] * share;
  }

  // Is what may have been lost on the way forward of any importance for what comes after?
  void certify() {
    const auto doubtful = [&](size_t sequence) { return trust(sequence) == Trust::doubt; };
    beliefs_.of(most_streams_ * pitch_);
    products_.of(most_streams_ * block_steps * pitch_);
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) { set_beliefs(turn, stream, 1.0); };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      kernels_.backward(model_.plain, stride_, ChainGoal::certify, streams, n, n_steps);
    };
    auto finish = [&](const ChainTurn& turn, const ChainStream& stream) {
      bool watched = false;
      for (const uint64_t bits : stream.watched) watched |= bits != 0;
      trust(turn.sequence) = watched ? Trust::none : Trust::full;
    };
    run(Odd::first, doubtful, begin, advance, finish);
  }

  void share() {
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (trust(sequence) == Trust::doubt) trust(sequence) = Trust::none;
      if (trust(sequence) == Trust::none) continue;
      kernels_.share_rows(states_.data() + step_of(sequence) * pitch_, model_.length(sequence), n_states_, pitch_,
                          result_row(sequence));
    }
  }

  double weight_of(size_t sequence) const { return goal_ == Goal::expected ? model_.weight(sequence) : 1.0; }
  void clear_rows(size_t sequence) {
    if (results_.rows) std::fill_n(result_row(sequence), model_.length(sequence) * n_states_, 0.0);
  }

  void backward() {
    const bool expected = goal_ == Goal::expected;
    const ChainGoal told = results_.rows ? ChainGoal::rows : ChainGoal::counts;
    const auto step = static_cast<ptrdiff_t>(pitch_);
    auto wanted = [&](size_t sequence) {
      if (trust(sequence) != Trust::full) return false;
      if (weight_of(sequence) > 0.0) return true;
      clear_rows(sequence);
      return false;
    };
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      set_beliefs(turn, stream, weight_of(turn.sequence));
      stream.out = results_.rows ? result_row(turn.sequence) + (model_.length(turn.sequence) - 1) * n_states_
                                 : sums.levels.data();
      kernels_.tell(model_.plain, told, stream);
      if (expected) add_row(stream, sums.end.data());
    };
    auto advance = [&](const ChainTurn* turns, ChainStream* streams, size_t n, size_t n_steps) {
      auto products = [&](size_t k) { return products_.data() + turns[k].slot * block_steps * pitch_; };
      for (size_t k = 0; k < n; k++) {  // the last step first, as they will lie
        streams[k].products = products(k) + (expected ? (n_steps - 1) * pitch_ : 0);
        streams[k].product_stride = expected ? -step : 0;
      }
      kernels_.backward(model_.plain, stride_, told, streams, n, n_steps);
      for (size_t k = 0; k < n && expected; k++) {
        kernels_.add_products(streams[k].state, products(k), n_steps, n_states_, pitch_, sums.products.data());
      }
    };
    auto finish = [&](const ChainTurn&, const ChainStream& stream) {
      if (expected) add_row(stream, sums.start.data());
    };
    run(Odd::first, wanted, begin, advance, finish);
  }

  void add_row(const ChainStream& stream, double* to) {
    for (size_t j = 0; j < pitch_; j++) to[j] += stream.state[j] * stream.belief[j];
  }

  // Everything again, for one sequence.
  void use_logarithms(size_t sequence) {
    const size_t n = model_.length(sequence), at = step_of(sequence);
    const bool coded = model_.input.coded();
    double* states = log_states_.of(n * pitch_);
    if (!coded) {
      kernels_.shift_rows(model_.input.emission + model_.first_step(sequence) * n_states_, n, n_states_,
                          log_rows_.of(n * pitch_), pitch_, maxima_.data() + at);
    }
    const ChainLogs logs{&model_.logs,
                         model_.start.logs.data(),
                         model_.end.logs.data(),
                         coded ? codes_.data() + at : &no_code,
                         coded ? model_.table.logs.data() : log_rows_.data(),
                         stride_,
                         n};
    const double scale = kernels_.log_forward(logs, states);
    const double *last = states + (n - 1) * pitch_, *end = model_.end.logs.data();
    double largest = -infinity, sum = 0.0;
    for (size_t j = 0; j < n_states_; j++) largest = std::max(largest, last[j] + end[j]);
    double found = -infinity;
    if (largest > -infinity) {
      for (size_t j = 0; j < n_states_; j++) sum += exponential(last[j] + end[j] - largest);
      const double taken = coded ? 0.0 : emission_shift(sequence);  // from the rows; those of a table are as they were
      found = (taken + scale) + (largest + natural_log(sum));
    }
    results_.log_likelihood[sequence] = found;
    if (goal_ == Goal::likelihood) return;
    if (goal_ == Goal::filter) {
      for (size_t k = 0; k < n * pitch_; k++) states[k] = exponential(states[k]);
      return kernels_.share_rows(states, n, n_states_, pitch_, result_row(sequence));
    }
    const double weight = weight_of(sequence);
    if (found == -infinity || weight == 0.0) return clear_rows(sequence);
    kernels_.log_backward(logs, states, weight, goal_ == Goal::expected ? sums.moves.data() : nullptr,
                          log_room_.of(3 * pitch_));
    for (size_t t = 0; t < n; t++) {
      const double* state = states + t * pitch_;
      if (results_.rows) {
        std::copy_n(state, n_states_, result_row(sequence) + t * n_states_);
      } else {
        double* level = sums.levels.data() + logs.codes[t] * pitch_;
        for (size_t j = 0; j < n_states_; j++) level[j] += state[j];
      }
    }
    if (goal_ != Goal::expected) return;
    for (size_t j = 0; j < n_states_; j++) {
      sums.start.data()[j] += states[j];
      sums.end.data()[j] += last[j];
    }
  }

  const ChainKernels& kernels_;
  const ChainModel& model_;
  Goal goal_;
  Results results_;
  size_t n_states_, pitch_, most_streams_;
  ChainStride stride_;
  ChainBatch batch_{};
  std::vector<Trust> trust_;
  Vector totals_;
  Room<uint32_t> codes_;
  Room<double> rows_, maxima_, scales_, states_, pairs_, beliefs_, products_, log_rows_, log_states_, log_room_;
};

// Runs all parts; add(sums) is called after each, in their order.
template <class Prepare, class Add>
bool run(const ChainKernels& kernels, const ChainModel& model, Goal goal, const Results& results, size_t threads,
         size_t n_sums, Prepare prepare, Add add) {
  const std::vector<size_t> parts = chain_parts(model, n_sums);
  const size_t n_parts = parts.size() - 1;
  const size_t used = limit_threads(choose_threads(threads, n_parts, chain_cells(model)), n_sums * sizeof(double));
  auto make = [&] { return Worker(kernels, model, goal, results); };
  auto process = [&](Worker& worker, size_t part, Order& order) {
    prepare(worker.sums);
    if (!worker.process(parts[part], parts[part + 1])) return false;
    return order.in_turn(0, part, [&] { add(worker.sums); });
  };
  return run_parts(n_parts, used, 1, make, process, [](Worker&) {});
}

bool run(const ChainKernels& kernels, const ChainInput& input, Goal goal, const Results& results, size_t threads) {
  const ChainModel model(input, kernels.lanes);
  return run(kernels, model, goal, results, threads, 0, [](PartSums&) {}, [](PartSums&) {});
}

}  // namespace

bool chain_log_likelihood(const ChainKernels& kernels, const ChainInput& input, size_t threads,
                          double* log_likelihood) {
  return run(kernels, input, Goal::likelihood, {log_likelihood}, threads);
}

bool chain_filter(const ChainKernels& kernels, const ChainInput& input, size_t threads, double* rows,
                  double* log_likelihood) {
  return run(kernels, input, Goal::filter, {log_likelihood, rows}, threads);
}

bool chain_posterior(const ChainKernels& kernels, const ChainInput& input, size_t threads, double* rows,
                     double* log_likelihood) {
  return run(kernels, input, Goal::posterior, {log_likelihood, rows}, threads);
}

bool chain_expected(const ChainKernels& kernels, const ChainInput& input, size_t threads, double* rows,
                    ChainSums& result, double* log_likelihood) {
  const ChainModel model(input, kernels.lanes);
  const size_t n = input.n_states, n_levels = input.coded() ? input.n_levels : 0, pitch = model.pitch;
  result.start.assign(n, 0.0);
  result.end.assign(n, 0.0);
  result.transition.assign(n * n, 0.0);
  result.levels.assign(n_levels * n, 0.0);
  auto prepare = [&](PartSums& sums) { sums.clear(n, pitch, n_levels); };
  auto add = [&](PartSums& sums) {
    const double* possible = model.transition.plain.data();
    for (size_t j = 0; j < n; j++) {
      result.start[j] += sums.start.data()[j];
      result.end[j] += sums.end.data()[j];
      for (size_t i = 0; i < n; i++) {
        const size_t at = i * pitch + j;
        result.transition[i * n + j] += sums.products.data()[at] * possible[at] + sums.moves.data()[at];
      }
    }
    for (size_t level = 0; level < n_levels; level++) {
      for (size_t j = 0; j < n; j++) result.levels[level * n + j] += sums.levels.data()[level * pitch + j];
    }
  };
  const size_t n_sums = (n_levels + 2 * n) * model.width;
  return run(kernels, model, Goal::expected, {log_likelihood, rows}, threads, n_sums, prepare, add);
}

}  // namespace tallybayes
