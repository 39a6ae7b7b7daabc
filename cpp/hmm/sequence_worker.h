// Shared parts of forward and backward passes and Viterbi: batches of sequences, and the segments of long ones. If the
// states of a batch need too much memory, only those at the start of every segment are stored (checkpoints); the
// backward pass recomputes the others, segment by segment.
#pragma once

#include "hmm/thread_team.h"
#include "hmm/hmm_model.h"

namespace tallybayes {

class ChainWorker {
 protected:
  ChainWorker(const ChainKernels& kernels, const ChainModel& model, size_t crew_size);

  // The next batch of the sequences from first to last, and its codes; false if one of these is invalid.
  bool open(size_t first, size_t last);

  size_t slot(size_t sequence) const { return sequence - batch_.first; }
  size_t step_of(size_t sequence) const { return model_.first_step(sequence) - batch_.first_step; }
  // The transitions within a segment; it begins with the last step of the previous one.
  size_t first_move(size_t segment) const { return segment * batch_.segment; }
  size_t last_segment(size_t sequence) const {
    const size_t n = model_.length(sequence);
    return n < 2 ? 0 : (n - 2) / batch_.segment;
  }
  size_t n_moves(size_t sequence, size_t segment) const {
    const size_t left = model_.length(sequence) - 1 - first_move(segment);
    return left < batch_.segment ? left : batch_.segment;
  }
  bool has(size_t sequence, size_t segment) const {
    return model_.length(sequence) > 0 && segment <= last_segment(sequence);
  }
  bool in_segments() const { return batch_.n_segments > 1; }
  // Start of the available rows of a sequence.
  size_t first_row(size_t sequence) const {
    return in_segments() ? slot(sequence) * (batch_.segment + 1) : step_of(sequence);
  }
  double* state_at(size_t sequence, size_t segment, size_t step) {
    return states_.data() + (first_row(sequence) + step - first_move(segment)) * pitch_;
  }
  double* checkpoint(size_t sequence, size_t segment) {
    return checkpoints_.data() + (slot(sequence) * batch_.n_segments + segment) * pitch_;
  }
  ChainStride stride() const {
    const bool coded = model_.input.coded();
    return {coded ? 1 : 0, coded ? 0 : static_cast<ptrdiff_t>(pitch_), keep_};
  }

  // Prepares the emissions of a segment: read(sequence, given rows, n, out, maxima) returns false if one is invalid.
  template <class Read>
  bool load(size_t segment, Read read) {
    if (model_.input.coded() || loaded_ == segment) return true;
    loaded_ = segment;
    for (size_t sequence = batch_.first; sequence < batch_.last; sequence++) {
      if (!has(sequence, segment)) continue;
      const size_t step = first_move(segment), n = n_moves(sequence, segment) + 1;
      const double* given = model_.input.emission + (model_.first_step(sequence) + step) * n_states_;
      double* out = rows_.data() + first_row(sequence) * pitch_;
      if (!read(sequence, given, n, out, maxima_.data() + step_of(sequence) + step)) return false;
    }
    return true;
  }

  // Positions a stream at a step of a loaded segment.
  void place(ChainStream& stream, const double* table, size_t sequence, size_t segment, size_t step);
  // Starts a segment: at the start of the sequence, or at the end of the previous segment. True at the start.
  bool begin_segment(const ChainTurn& turn, ChainStream& stream, const double* table, size_t segment);
  // Stores the last states of a segment; true at the end of the sequence.
  bool end_segment(const ChainTurn& turn, const ChainStream& stream, size_t segment);

  // Interleaves the sequences of the batch that have this segment and are selected.
  template <class Wanted, class Begin, class Advance, class Finish>
  void run(size_t segment, size_t most_steps, Odd odd, Wanted wanted, Begin begin, Advance advance, Finish finish) {
    size_t sequence = batch_.first;
    auto next = [&] {
      while (sequence < batch_.last && !(has(sequence, segment) && wanted(sequence))) sequence++;
      return sequence < batch_.last ? sequence++ : no_sequence;
    };
    auto moves = [&](size_t which) { return n_moves(which, segment); };
    take_turns(model_.wide(), batch_.n_streams, most_steps, odd, next, moves, begin, advance, finish);
  }

  const ChainKernels& kernels_;
  const ChainModel& model_;
  ChainCrew crew_;
  size_t n_states_, pitch_;
  bool keep_ = true;  // whether all states of a segment are stored, or two buffers alternate
  ChainBatch batch_{};
  size_t loaded_ = no_sequence;
  Room<uint32_t> codes_;
  Room<double> rows_, maxima_, scales_, states_, checkpoints_, pairs_;
};

}  // namespace tallybayes
