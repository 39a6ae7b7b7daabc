#include "hmm/sequence_worker.h"

#include <algorithm>

namespace tallybayes {

namespace {

const uint32_t no_code = 0;  // rows are those of the steps

}  // namespace

ChainWorker::ChainWorker(const ChainKernels& kernels, const ChainModel& model, size_t crew_size)
    : kernels_(kernels), model_(model), crew_(crew_size), n_states_(model.input.n_states), pitch_(model.pitch) {}

bool ChainWorker::open(size_t first, size_t last) {
  batch_ = next_batch(model_, first, last);
  loaded_ = no_sequence;
  const size_t n = batch_.n_steps, count = batch_.last - batch_.first;
  scales_.of(n / chain_interval + 1);
  pairs_.of(batch_.n_streams * 2 * pitch_);
  if (in_segments()) checkpoints_.of(count * batch_.n_segments * pitch_);
  if (!model_.input.coded()) {
    maxima_.of(n);
    rows_.of((in_segments() ? count * (batch_.segment + 1) : n) * pitch_);
    return true;
  }
  return kernels_.load_levels(model_.input.codes, batch_.first_step, n, static_cast<uint32_t>(model_.input.n_levels),
                              codes_.of(n));
}

void ChainWorker::place(ChainStream& stream, const double* table, size_t sequence, size_t segment, size_t step) {
  const bool coded = model_.input.coded();
  const size_t at = first_row(sequence) + step - first_move(segment);
  stream.codes = coded ? codes_.data() + step_of(sequence) + step : &no_code;
  stream.rows = coded ? table : rows_.data() + at * pitch_;
  stream.scale = scales_.data() + step_of(sequence) / chain_interval + step / chain_interval;
  stream.state_stride = keep_ ? static_cast<ptrdiff_t>(pitch_) : 0;
  if (keep_) stream.state = states_.data() + at * pitch_;
}

bool ChainWorker::begin_segment(const ChainTurn& turn, ChainStream& stream, const double* table, size_t segment) {
  place(stream, table, turn.sequence, segment, first_move(segment));
  if (!keep_) {
    stream.state = pairs_.data() + turn.slot * 2 * pitch_;
    stream.state_stride = static_cast<ptrdiff_t>(pitch_);
  }
  if (segment == 0) return true;
  std::copy_n(checkpoint(turn.sequence, segment), pitch_, stream.state);
  return false;
}

bool ChainWorker::end_segment(const ChainTurn& turn, const ChainStream& stream, size_t segment) {
  if (segment == last_segment(turn.sequence)) return true;
  std::copy_n(stream.state, pitch_, checkpoint(turn.sequence, segment + 1));
  return false;
}

}  // namespace tallybayes
