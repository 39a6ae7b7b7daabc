#include "hmm/log_space.h"

#include <algorithm>
#include <limits>

#include "core/elementary.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const uint32_t no_code = 0;

}  // namespace

void LogPass::run(size_t sequence, size_t n_at_once, double weight, const uint32_t* codes, PartSums& sums) {
  sequence_ = sequence;
  codes_ = codes;
  const size_t n = model_.length(sequence);
  n_at_once_ = std::min(n, n_at_once);
  states_.of(n_at_once_ * pitch_);
  checkpoints_.of(n / n_at_once_ * pitch_ + pitch_);
  maxima_.of(n);
  const double found = forward();
  results_.log_likelihood[sequence] = found;
  if (goal_ == Goal::likelihood || goal_ == Goal::filter) return;
  if (found == -infinity || weight == 0.0) {
    if (results_.rows) std::fill_n(result_row(0), n * n_states_, 0.0);
    if (goal_ == Goal::draw) drawer_.draw_none(model_.first_step(sequence), n);
    return;
  }
  backward(weight, sums);
}

// The steps of a part, and their emissions.
ChainLogs LogPass::stretch(size_t first, size_t n) {
  const bool coded = model_.input.coded();
  if (!coded) {
    kernels_.shift_rows(model_.input.emission + (model_.first_step(sequence_) + first) * n_states_, n, n_states_,
                        rows_.of(n_at_once_ * pitch_), pitch_, maxima_.data() + first);
  }
  ChainLogs logs{&model_.logs(),
                 model_.start.logs.data(),
                 model_.end.logs.data(),
                 coded ? codes_ + first : &no_code,
                 coded ? model_.table.logs.data() : rows_.data(),
                 {coded ? 1 : 0, coded ? 0 : static_cast<ptrdiff_t>(pitch_), true},
                 n};
  logs.first = first == 0;
  logs.last = first + n == model_.length(sequence_);
  return logs;
}

double LogPass::forward() {
  const size_t n = model_.length(sequence_);
  ChainTotal total;
  bool possible = true;
  double* states = states_.data();
  for (size_t first = 0, k = 0; first < n; first += n_at_once_, k++) {
    const size_t n_now = std::min(n_at_once_, n - first);
    const ChainLogs logs = stretch(first, n_now);
    if (possible) {
      possible = kernels_.log_forward(logs, k ? checkpoints_.data() + k * pitch_ : nullptr, states, total);
    } else {
      std::fill_n(states, n_now * pitch_, -infinity);
    }
    std::copy_n(states + (n_now - 1) * pitch_, pitch_, checkpoints_.data() + (logs.last ? 0 : k + 1) * pitch_);
    if (goal_ == Goal::filter) {
      for (size_t at = 0; at < n_now * pitch_; at++) states[at] = exponential(states[at]);
      kernels_.share_rows(states, n_now, n_states_, pitch_, result_row(first));
    }
  }
  const double *last = checkpoints_.data(), *end = model_.end.logs.data();
  double largest = -infinity, sum = 0.0;
  for (size_t j = 0; j < n_states_; j++) largest = std::max(largest, last[j] + end[j]);
  if (largest == -infinity) return -infinity;
  for (size_t j = 0; j < n_states_; j++) sum += exponential(last[j] + end[j] - largest);
  // The shifts of the rows; those of a table are unshifted.
  const double taken =
      model_.input.coded() ? 0.0 : careful_sum(n, [&](size_t t) { return maxima_.data()[t]; });
  return (taken + (total.sum + total.rest)) + (largest + natural_log(sum));
}

void LogPass::backward(double weight, PartSums& sums) {
  const size_t n = model_.length(sequence_);
  double* moves = goal_ == Goal::expected ? sums.moves.data() : nullptr;
  for (size_t k = (n - 1) / n_at_once_ + 1; k-- > 0;) {
    const size_t first = k * n_at_once_, n_now = std::min(n_at_once_, n - first);
    const ChainLogs logs = stretch(first, n_now);
    if (!logs.last) {  // its states were overwritten since
      ChainTotal unused;
      kernels_.log_forward(logs, k ? checkpoints_.data() + k * pitch_ : nullptr, states_.data(), unused);
    }
    if (goal_ == Goal::draw) {
      for (size_t t = n_now; t-- > 0;) {
        drawer_.draw(states_.data() + t * pitch_, model_.first_step(sequence_) + first + t, first + t + 1 == n, true);
      }
      continue;
    }
    kernels_.log_backward(logs, states_.data(), weight, moves, room_.of(3 * pitch_));
    write_row(logs, first, sums);
  }
}

void LogPass::write_row(const ChainLogs& logs, size_t first, PartSums& sums) {
  for (size_t t = 0; t < logs.n_steps; t++) {
    const double* state = states_.data() + t * pitch_;
    if (results_.rows) {
      std::copy_n(state, n_states_, result_row(first + t));
    } else {
      double* level = sums.levels.data() + logs.codes[t] * pitch_;
      for (size_t j = 0; j < n_states_; j++) level[j] += state[j];
    }
  }
  if (goal_ != Goal::expected) return;
  const double *begins = states_.data(), *ends = begins + (logs.n_steps - 1) * pitch_;
  for (size_t j = 0; j < n_states_; j++) {
    if (logs.first) sums.start.data()[j] += begins[j];
    if (logs.last) sums.end.data()[j] += ends[j];
  }
}

}  // namespace tallybayes
