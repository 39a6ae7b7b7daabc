#include "hmm/hmm.h"

#include <algorithm>
#include <cstring>

#include "hmm/log_space.h"
#include "hmm/sequence_worker.h"
#include "core/elementary.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

constexpr double log_two = 0.69314718055994530942;

enum class Trust : uint8_t { full, doubt, none };

class Worker : ChainWorker {
 public:
  Worker(const ChainKernels& kernels, const ChainModel& model, Goal goal, const Results& results, size_t crew_size)
      : ChainWorker(kernels, model, crew_size), goal_(goal), results_(results),
        drawer_(model, results.draws), logs_(kernels, model, goal, results) {}

  // The sequences from first to last; false if an emission is invalid.
  bool process(size_t first, size_t last) {
    while (first < last) {
      if (!open(first, last)) return false;
      first = batch_.last;
      const size_t count = batch_.last - batch_.first;
      trust_.assign(count, Trust::full);
      watched_.assign(count, 0);
      totals_.assign(count, 0.0);
      const bool back = goal_ != Goal::likelihood && goal_ != Goal::filter;
      keep_ = goal_ == Goal::filter || (back && !in_segments());
      if (keep_ || back) states_.of((in_segments() ? count * (batch_.segment + 1) : batch_.n_steps) * pitch_);
      for (size_t segment = 0; segment < batch_.n_segments; segment++) {
        if (!load(segment, true)) return false;
        forward(segment);
        if (goal_ == Goal::filter) share(segment);
      }
      if (goal_ != Goal::filter) certify();
      for (size_t segment = back ? batch_.n_segments : 0; segment-- > 0;) {
        load(segment, false);
        if (in_segments()) again(segment);
        goal_ == Goal::draw ? draw(segment) : backward(segment);
      }
      for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
        if (trust(sequence) == Trust::full) continue;
        const size_t n_at_once = in_segments() ? batch_.segment : model_.length(sequence);
        const uint32_t* codes = model_.input.coded() ? codes_.data() + step_of(sequence) : nullptr;
        logs_.run(sequence, n_at_once, weight_of(sequence), codes, sums);
      }
    }
    return true;
  }

  PartSums sums;

 private:
  Trust& trust(size_t sequence) { return trust_[slot(sequence)]; }
  double& total(size_t sequence) { return totals_[slot(sequence)]; }
  double* result_row(size_t sequence) const { return results_.rows + model_.first_step(sequence) * n_states_; }
  const double* table() const { return model_.table.plain.data(); }

  bool load(size_t segment, bool first_time) {
    return ChainWorker::load(segment, [&](size_t sequence, const double* given, size_t n, double* out, double* maxima) {
      bool tiny = false;
      if (!kernels_.exp_rows(given, n, n_states_, out, pitch_, maxima, tiny)) return false;
      if (tiny && first_time && !model_.every_move) trust(sequence) = Trust::doubt;
      return true;
    });
  }

  void advance(ChainStream* streams, size_t n, size_t n_steps) {
    const bool watch = !model_.every_move;
    crew_.run([&](const ChainTeam& team) {
      kernels_.forward(model_.plain, stride(), watch, streams, n, n_steps, team);
    });
  }

  void start(ChainStream& stream) {
    const double *first = model_.start.plain.data(), *row = stream.rows + *stream.codes * pitch_;
    for (size_t j = 0; j < pitch_; j++) {
      stream.state[j] = first[j] * row[j];
      stream.watched[0] |= static_cast<uint64_t>(stream.state[j] > 0.0 && stream.state[j] < chain_tiny);
    }
  }

  void forward(size_t segment) {
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      if (begin_segment(turn, stream, table(), segment)) start(stream);
    };
    auto move = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) { advance(streams, n, n_steps); };
    auto finish = [&](const ChainTurn& turn, const ChainStream& stream) {
      for (const uint64_t bits : stream.watched) watched_[slot(turn.sequence)] |= static_cast<uint8_t>(bits != 0);
      if (end_segment(turn, stream, segment)) judge(turn.sequence, stream);
    };
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (model_.length(sequence) == 0) results_.log_likelihood[sequence] = 0.0;
    }
    run(segment, chain_block, Odd::last, [](size_t) { return true; }, begin, move, finish);
  }

  // The states of a segment, which were not stored.
  void again(size_t segment) {
    keep_ = true;
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      if (begin_segment(turn, stream, table(), segment)) start(stream);
    };
    auto move = [&](const ChainTurn*, ChainStream* streams, size_t n, size_t n_steps) { advance(streams, n, n_steps); };
    auto wanted = [&](size_t sequence) { return trust(sequence) == Trust::full && weight_of(sequence) > 0.0; };
    run(segment, chain_block, Odd::last, wanted, begin, move, [](const ChainTurn&, const ChainStream&) {});
  }

  // Adds the likelihood, and determines whether underflow may have affected it.
  void judge(size_t sequence, const ChainStream& stream) {
    const size_t n = model_.length(sequence);
    double sum = 0.0;
    for (size_t j = 0; j < n_states_; j++) sum += stream.state[j] * model_.end.plain.data()[j];
    const size_t n_scales = (n - 1) / chain_interval;
    int64_t powers = 0, largest = 0;  // the scales' exponents, biased by 1023
    for (size_t k = 0; k < n_scales; k++) {
      int64_t bits;
      std::memcpy(&bits, stream.scale - k - 1, sizeof(bits));
      powers += bits >> 52;
      largest = std::max(largest, bits >> 52);
    }
    constexpr int64_t too_large = 1023 + 332;  // 1 / chain_tiny
    if (!(sum >= chain_tiny) || largest > too_large) {
      trust(sequence) = Trust::none;
    } else if (!model_.every_move && (watched_[slot(sequence)] || !model_.clear)) {
      trust(sequence) = Trust::doubt;
    }
    total(sequence) = sum;
    const auto moves = static_cast<double>(n - 1);
    const double exponent = 1023.0 * static_cast<double>(n_scales) - static_cast<double>(powers);
    const double shift = model_.start_shift + moves * model_.transition_shift + model_.end_shift;
    results_.log_likelihood[sequence] = (shift + emission_shift(sequence)) + (exponent * log_two + natural_log(sum));
  }

  // The shifts of the emissions of a sequence.
  double emission_shift(size_t sequence) {
    const size_t n = model_.length(sequence), at = step_of(sequence);
    if (!model_.input.coded()) return careful_sum(n, [&](size_t t) { return maxima_.data()[at + t]; });
    if (model_.level_shifts.empty()) return 0.0;
    return careful_sum(n, [&](size_t t) { return model_.level_shifts[codes_.data()[at + t]]; });
  }

  // Positions of the backward variables and of the products of a stream. At the last step: the end probabilities,
  // scaled so that states times backward variables sum to `weight`; true there.
  bool set_betas(const ChainTurn& turn, ChainStream& stream, size_t segment, double weight) {
    const size_t place_of_turn = in_segments() ? slot(turn.sequence) : turn.slot;
    place(stream, table(), turn.sequence, segment, first_move(segment) + n_moves(turn.sequence, segment));
    stream.beta = betas_.data() + place_of_turn * pitch_;
    if (segment != last_segment(turn.sequence)) return false;
    const double share = weight / total(turn.sequence);
    for (size_t j = 0; j < pitch_; j++) stream.beta[j] = model_.end.plain.data()[j] * share;
    return true;
  }
  double* products_of(const ChainTurn& turn) { return products_.data() + turn.slot * chain_block * pitch_; }

  // Backward pass; the products of the last step are written first.
  void retreat(ChainGoal goal, const ChainTurn* turns, ChainStream* streams, size_t n, size_t n_steps) {
    const auto step = static_cast<ptrdiff_t>(pitch_);
    const bool all = goal_ == Goal::expected || model_.wide();
    for (size_t k = 0; k < n; k++) {
      streams[k].products = products_of(turns[k]) + (all ? (n_steps - 1) * pitch_ : 0);
      streams[k].product_stride = all ? -step : 0;
    }
    crew_.run([&](const ChainTeam& team) {
      kernels_.backward(model_.plain, stride(), goal, streams, n, n_steps, team);
    });
  }

  // Whether states that may have underflowed in the forward pass matter for later steps.
  void certify() {
    const auto doubtful = [&](size_t sequence) { return trust(sequence) == Trust::doubt; };
    betas_.of(model_.most_streams() * pitch_);
    products_.of(model_.most_streams() * chain_block * pitch_);
    watched_.assign(watched_.size(), 0);
    for (size_t segment = batch_.n_segments; segment-- > 0;) {
      if (std::none_of(trust_.begin(), trust_.end(), [](Trust trust) { return trust == Trust::doubt; })) return;
      load(segment, false);
      auto begin = [&](const ChainTurn& turn, ChainStream& stream) { set_betas(turn, stream, segment, 1.0); };
      auto move = [&](const ChainTurn* turns, ChainStream* streams, size_t n, size_t n_steps) {
        retreat(ChainGoal::certify, turns, streams, n, n_steps);
      };
      auto finish = [&](const ChainTurn& turn, const ChainStream& stream) {
        for (const uint64_t bits : stream.watched) watched_[slot(turn.sequence)] |= static_cast<uint8_t>(bits != 0);
        if (segment == 0) trust(turn.sequence) = watched_[slot(turn.sequence)] ? Trust::none : Trust::full;
      };
      run(segment, chain_block, Odd::first, doubtful, begin, move, finish);
    }
  }

  void share(size_t segment) {
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (!has(sequence, segment)) continue;
      const size_t step = first_move(segment);
      kernels_.share_rows(state_at(sequence, segment, step), n_moves(sequence, segment) + 1, n_states_, pitch_,
                          result_row(sequence) + step * n_states_);
    }
  }

  double weight_of(size_t sequence) const { return goal_ == Goal::expected ? model_.weight(sequence) : 1.0; }

  void backward(size_t segment) {
    const bool expected = goal_ == Goal::expected;
    const ChainGoal goal = results_.rows ? ChainGoal::rows : ChainGoal::counts;
    auto wanted = [&](size_t sequence) {
      if (trust(sequence) != Trust::full) return false;
      if (weight_of(sequence) > 0.0) return true;
      if (results_.rows && segment == 0) std::fill_n(result_row(sequence), model_.length(sequence) * n_states_, 0.0);
      return false;
    };
    auto begin = [&](const ChainTurn& turn, ChainStream& stream) {
      const size_t step = first_move(segment) + n_moves(turn.sequence, segment);
      const bool ends = set_betas(turn, stream, segment, weight_of(turn.sequence));
      stream.out = results_.rows ? result_row(turn.sequence) + step * n_states_ : sums.levels.data();
      if (!ends) return;
      kernels_.write_row(model_.plain, goal, stream);
      if (expected) add_row(stream, sums.end.data());
    };
    auto move = [&](const ChainTurn* turns, ChainStream* streams, size_t n, size_t n_steps) {
      retreat(goal, turns, streams, n, n_steps);
      if (expected && model_.wide()) return add_wide(turns, streams, n, n_steps);
      for (size_t k = 0; k < n && expected; k++) {
        kernels_.add_products(streams[k].state, products_of(turns[k]), n_steps, n_states_, pitch_,
                              sums.products.data());
      }
    };
    auto finish = [&](const ChainTurn&, const ChainStream& stream) {
      if (expected && segment == 0) add_row(stream, sums.start.data());
    };
    run(segment, chain_block, Odd::first, wanted, begin, move, finish);
  }

  // Draws the states of a segment in every path, given those of the next one; underflowed states are left to the
  // computation in logarithms.
  void draw(size_t segment) {
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (!has(sequence, segment) || trust(sequence) != Trust::full) continue;
      const size_t first = first_move(segment), last = first + n_moves(sequence, segment);
      const bool ends = segment == last_segment(sequence);  // otherwise its last step is drawn already
      for (size_t step = ends ? last + 1 : last; step-- > first;) {
        const double* state = state_at(sequence, segment, step);
        if (drawer_.draw(state, model_.first_step(sequence) + step, step == last, false)) continue;
        trust(sequence) = Trust::none;
        break;
      }
    }
  }

  // The products of several sequences, as many at a time as are summed at once.
  void add_wide(const ChainTurn* turns, const ChainStream* streams, size_t n, size_t n_steps) {
    double* room = turned_.of(chain_block * n_states_);
    const size_t n_together = std::max<size_t>(1, chain_block / n_steps);
    ChainPiece pieces[most_wide_streams];
    for (size_t first = 0; first < n; first += n_together) {
      const size_t n_pieces = std::min(n_together, n - first);
      for (size_t k = 0; k < n_pieces; k++) {
        pieces[k] = {streams[first + k].state, products_of(turns[first + k]), n_steps};
      }
      crew_.run([&](const ChainTeam& team) {
        kernels_.wide_products(model_.plain, pieces, n_pieces, room, sums.products.data(), team);
      });
    }
  }

  void add_row(const ChainStream& stream, double* to) {
    for (size_t j = 0; j < pitch_; j++) to[j] += stream.state[j] * stream.beta[j];
  }

  Goal goal_;
  Results results_;
  ChainDrawer drawer_;
  LogPass logs_;
  std::vector<Trust> trust_;
  std::vector<uint8_t> watched_;
  Vector totals_;
  Room<double> betas_, products_, turned_;
};

// Runs all parts; add(sums) is called after each, in order.
template <class Prepare, class Add>
bool run(const ChainKernels& kernels, const ChainModel& model, Goal goal, const Results& results, size_t threads,
         size_t n_sums, Prepare prepare, Add add) {
  const std::vector<size_t> parts = chain_parts(model, n_sums);
  const size_t n_parts = parts.size() - 1;
  const size_t used = limit_threads(choose_threads(threads, n_parts, chain_cells(model)), n_sums * sizeof(double));
  const size_t crew = crew_size(model, threads, used);
  auto make = [&] { return Worker(kernels, model, goal, results, crew); };
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

bool chain_draw_paths(const ChainKernels& kernels, const ChainInput& input, size_t threads, size_t n_paths,
                      const double* uniform, int64_t* paths, double* log_likelihood) {
  return run(kernels, input, Goal::draw, {log_likelihood, nullptr, {uniform, paths, n_paths}}, threads);
}

bool chain_expected(const ChainKernels& kernels, const ChainInput& input, size_t threads, double* rows,
                    ChainSums& result, double* log_likelihood) {
  const ChainModel model(input, kernels.lanes);
  const size_t n = input.n_states, n_levels = input.coded() ? input.n_levels : 0, pitch = model.pitch;
  result.start.assign(n, 0.0);
  result.end.assign(n, 0.0);
  result.transition.assign(n * n, 0.0);
  result.levels.assign(n_levels * n, 0.0);
  auto prepare = [&](PartSums& sums) { sums.clear(model); };
  auto add_moves = [&](const PartSums& sums) {
    const double *possible = model.transition.plain.data(), *products = sums.products.data();
    auto add = [&](size_t i, size_t j, double product) {
      const size_t at = i * pitch + j;
      result.transition[i * n + j] += product * possible[at] + sums.moves.data()[at];
    };
    const ChainPanels& panels = model.plain.into;
    const size_t width = panels.vectors * kernels.lanes;
    for (size_t i = 0; i < n && !model.wide(); i++) {
      for (size_t j = 0; j < n; j++) add(i, j, products[i * pitch + j]);
    }
    for (size_t panel = 0; panel < panels.n_panels; panel++) {
      const size_t first = panel * width, n_to = std::min(width, n - first);
      for (size_t e = panels.begin[panel]; e < panels.begin[panel + 1]; e++) {
        for (size_t k = 0; k < n_to; k++) add(panels.from[e], first + k, products[e * width + k]);
      }
    }
  };
  auto add = [&](PartSums& sums) {
    add_moves(sums);
    for (size_t j = 0; j < n; j++) {
      result.start[j] += sums.start.data()[j];
      result.end[j] += sums.end.data()[j];
    }
    for (size_t level = 0; level < n_levels; level++) {
      for (size_t j = 0; j < n; j++) result.levels[level * n + j] += sums.levels.data()[level * pitch + j];
    }
  };
  const size_t n_sums = (n_levels + 2 * n) * model.width;
  return run(kernels, model, Goal::expected, {log_likelihood, rows}, threads, n_sums, prepare, add);
}

}  // namespace tallybayes
