// The most probable path of every sequence.
#include <algorithm>
#include <limits>

#include "hmm/sequence_worker.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class PathWorker : ChainWorker {
 public:
  PathWorker(const ChainKernels& kernels, const ChainModel& model, int64_t* path, double* score, size_t crew_size)
      : ChainWorker(kernels, model, crew_size), path_(path), score_(score) {}

  bool process(size_t first, size_t last) {
    while (first < last) {
      if (!open(first, last)) return false;
      first = batch_.last;
      const size_t n_rows = in_segments() ? (batch_.last - batch_.first) * (batch_.segment + 1) : batch_.n_steps;
      if (marked()) {
        marks_.of(batch_.n_steps);
      } else {
        states_.of(n_rows * pitch_);
      }
      keep_ = !in_segments() && !marked();
      for (size_t segment = 0; segment < batch_.n_segments; segment++) {
        if (!load(segment)) return false;
        forward(segment, true);
      }
      for (size_t segment = batch_.n_segments; segment-- > 0;) {
        if (!marked()) {
          keep_ = true;
          load(segment);
          if (in_segments()) forward(segment, false);
        }
        trace(segment);
      }
    }
    return true;
  }

 private:
  // With few states the best predecessors are stored: one pass per sequence, however long it is.
  bool marked() const { return n_states_ <= most_marked_states; }
  uint64_t* marks_at(size_t sequence, size_t step) { return marks_.data() + step_of(sequence) + step; }

  bool load(size_t segment) {
    return ChainWorker::load(segment, [&](size_t, const double* given, size_t n, double* out, double* maxima) {
      return kernels_.shift_rows(given, n, n_states_, out, pitch_, maxima);
    });
  }

  // First pass, or recomputation of the states of a segment.
  void forward(size_t segment, bool first_time) {
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      if (marked()) stream.marks = marks_at(turn.sequence, first_move(segment));
      if (!begin_segment(turn, stream, model_.table.logs.data(), segment)) return;
      const double *start = model_.start.logs.data(), *row = stream.rows + *stream.codes * pitch_;
      for (size_t j = 0; j < pitch_; j++) stream.state[j] = start[j] + row[j];
    };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      crew_.run([&](const ChainTeam& team) {
        kernels_.best_forward(model_.logs(), stride(), streams, n, n_steps, team);
      });
    };
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (model_.length(sequence) == 0) score_[sequence] = 0.0;
    }
    auto wanted = [&](size_t sequence) { return first_time || score_[sequence] != -infinity; };
    auto finish = [&](const ChainTurn& turn, const ChainStream& stream) {
      if (first_time && end_segment(turn, stream, segment)) choose(turn.sequence, stream);
    };
    run(segment, ~size_t{0}, Odd::last, wanted, begin, advance, finish);
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

  void trace(size_t segment) {
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      const size_t last = first_move(segment) + n_moves(turn.sequence, segment);
      if (marked()) {
        stream.marks = marks_at(turn.sequence, last);
      } else {
        stream.state = state_at(turn.sequence, segment, last);
      }
      stream.state_stride = static_cast<ptrdiff_t>(pitch_);
      stream.path = path_ + model_.first_step(turn.sequence) + last;
      stream.best = *stream.path;
    };
    auto advance = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) {
      kernels_.trace(model_.logs(), streams, n, n_steps);
    };
    auto wanted = [&](size_t sequence) { return score_[sequence] != -infinity; };
    run(segment, ~size_t{0}, Odd::last, wanted, begin, advance, [](const ChainTurn&, const ChainStream&) {});
  }

  int64_t* path_;
  double* score_;
  Room<uint64_t> marks_;
};

}  // namespace

bool chain_best_path(const ChainKernels& kernels, const ChainInput& input, size_t threads, int64_t* path,
                     double* score) {
  const ChainModel model(input, kernels.lanes);
  const std::vector<size_t> parts = chain_parts(model, 0);
  const size_t n_parts = parts.size() - 1;
  const size_t used = choose_threads(threads, n_parts, chain_cells(model)), crew = crew_size(model, threads, used);
  auto make = [&] { return PathWorker(kernels, model, path, score, crew); };
  auto process = [&](PathWorker& worker, size_t part, Order&) { return worker.process(parts[part], parts[part + 1]); };
  return run_parts(n_parts, used, 1, make, process, [](PathWorker&) {});
}

}  // namespace tallybayes
