// The most probable path of every sequence.
#include <algorithm>
#include <limits>

#include "chain_model.h"
#include "parallel.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const uint32_t no_code = 0;

class PathWorker {
 public:
  PathWorker(const ChainKernels& kernels, const ChainModel& model, int64_t* path, double* score)
      : kernels_(kernels), model_(model), path_(path), score_(score), n_states_(model.input.n_states),
        pitch_(model.pitch), most_streams_(model.most_streams()) {
    const bool coded = model.input.coded();
    stride_ = {coded ? 1 : 0, coded ? 0 : static_cast<ptrdiff_t>(pitch_), true};
  }

  bool process(size_t first, size_t last) {
    while (first < last) {
      batch_ = next_batch(model_, first, last, most_streams_);
      first = batch_.last;
      if (!load()) return false;
      forward();
      trace();
    }
    return true;
  }

 private:
  size_t step_of(size_t sequence) const { return model_.first_step(sequence) - batch_.first_step; }

  bool load() {
    const ChainInput& input = model_.input;
    const size_t n = batch_.n_steps;
    states_.of(n * pitch_);
    scales_.of(n / chain_interval + 1);
    if (input.coded()) {
      return kernels_.load_levels(input.codes, batch_.first_step, n, static_cast<uint32_t>(input.n_levels),
                                  codes_.of(n));
    }
    return kernels_.shift_rows(input.emission + batch_.first_step * n_states_, n, n_states_, rows_.of(n * pitch_),
                               pitch_, maxima_.of(n));
  }

  template <class Begin, class Advance, class Finish>
  void run(bool possible_only, Begin begin, Advance advance, Finish finish) {
    size_t sequence = batch_.first;
    auto skip = [&](size_t k) { return model_.length(k) == 0 || (possible_only && score_[k] == -infinity); };
    auto next = [&] {
      while (sequence < batch_.last && skip(sequence)) sequence++;
      return sequence < batch_.last ? sequence++ : no_sequence;
    };
    take_turns(model_, batch_.n_streams, ~size_t{0}, Odd::last, next, begin, advance, finish);
  }

  void forward() {
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      const size_t at = step_of(turn.sequence);
      const bool coded = model_.input.coded();
      stream.codes = coded ? codes_.data() + at : &no_code;
      stream.rows = coded ? model_.table.logs.data() : rows_.data() + at * pitch_;
      stream.state = states_.data() + at * pitch_;
      stream.state_stride = static_cast<ptrdiff_t>(pitch_);
      stream.scale = scales_.data() + at / chain_interval;
      const double *start = model_.start.logs.data(), *row = stream.rows + *stream.codes * pitch_;
      for (size_t j = 0; j < pitch_; j++) stream.state[j] = start[j] + row[j];
    };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      kernels_.best_forward(model_.logs, stride_, streams, n, n_steps);
    };
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (model_.length(sequence) == 0) score_[sequence] = 0.0;
    }
    auto finish = [&](const ChainTurn& turn, const ChainStream& stream) { choose(turn.sequence, stream); };
    run(false, begin, advance, finish);
  }

  // The last state, and the score.
  void choose(size_t sequence, const ChainStream& stream) {
    const size_t n = model_.length(sequence), at = step_of(sequence);
    const double* end = model_.end.logs.data();
    int64_t* path = path_ + model_.first_step(sequence);
    size_t best = 0;
    for (size_t j = 1; j < n_states_; j++) {
      if (stream.state[j] + end[j] > stream.state[best] + end[best]) best = j;
    }
    const double score = stream.state[best] + end[best];
    score_[sequence] = score;
    path[n - 1] = static_cast<int64_t>(best);
    if (score == -infinity) {
      std::fill_n(path, n, int64_t{-1});
      return;
    }
    score_[sequence] += careful_sum((n - 1) / chain_interval, [&](size_t k) { return *(stream.scale - k - 1); });
    if (!model_.input.coded()) {
      score_[sequence] += careful_sum(n, [&](size_t t) { return maxima_.data()[at + t]; });
    }
  }

  void trace() {
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      const size_t last = model_.length(turn.sequence) - 1;
      stream.state = states_.data() + (step_of(turn.sequence) + last) * pitch_;
      stream.state_stride = static_cast<ptrdiff_t>(pitch_);
      stream.path = path_ + model_.first_step(turn.sequence) + last;
      stream.best = *stream.path;
    };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      kernels_.trace(model_.logs, streams, n, n_steps);
    };
    run(true, begin, advance, [](const ChainTurn&, const ChainStream&) {});
  }

  const ChainKernels& kernels_;
  const ChainModel& model_;
  int64_t* path_;
  double* score_;
  size_t n_states_, pitch_, most_streams_;
  ChainStride stride_;
  ChainBatch batch_{};
  Room<uint32_t> codes_;
  Room<double> rows_, maxima_, scales_, states_;
};

}  // namespace

bool chain_best_path(const ChainKernels& kernels, const ChainInput& input, size_t threads, int64_t* path,
                     double* score) {
  const ChainModel model(input, kernels.lanes);
  const std::vector<size_t> parts = chain_parts(model, 0);
  const size_t n_parts = parts.size() - 1;
  auto make = [&] { return PathWorker(kernels, model, path, score); };
  auto process = [&](PathWorker& worker, size_t part, Order&) { return worker.process(parts[part], parts[part + 1]); };
  return run_parts(n_parts, choose_threads(threads, n_parts, chain_cells(model)), 1, make, process,
                   [](PathWorker&) {});
}

}  // namespace tallybayes
