// What forward and backward passes and the search for best paths share: batches of sequences, and the segments of long
// ones. Of a batch whose states take too much memory, only those at the beginning of every segment are kept on the way
// forward; on the way back, the others are found again, segment by segment.
#pragma once

#include "hmm/thread_team.h"
#include "hmm/hmm_model.h"

namespace tallybayes {

class ChainWorker {
 protected:
  ChainWorker(const ChainKernels& kernels, const ChainModel& model, size_t crew_size);

  // The next batch of the sequences from first to last, and its codes; false where one of these is refused.
  bool open(size_t first, size_t last);

  size_t slot(size_t sequence) const { return sequence - batch_.first; }
  size_t step_of(size_t sequence) const { return model_.first_step(sequence) - batch_.first_step; }
  // The moves from step to step within a segment; it begins with the step that the one before ends with.
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
  // Where the rows of a sequence begin that are at hand.
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

  // Makes the emissions of a segment ready: read(sequence, given rows, n, out, maxima) returns false to refuse them.
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

  // Lets a stream stand at a step of a segment that is loaded.
  void place(ChainStream& stream, const double* table, size_t sequence, size_t segment, size_t step);
  // Lets a stream begin a segment: at the start of the sequence, or where the one before it ended. True at the start.
  bool begin_segment(const ChainTurn& turn, ChainStream& stream, const double* table, size_t segment);
  // Keeps the states with which a segment ends; true where the sequence ends.
  bool end_segment(const ChainTurn& turn, const ChainStream& stream, size_t segment);

  // Those sequences of the batch take turns that have this segment and are wanted.
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
  bool keep_ = true;  // whether all states of a segment are kept, or two places take turns
  ChainBatch batch_{};
  size_t loaded_ = no_sequence;
  Room<uint32_t> codes_;
  Room<double> rows_, maxima_, scales_, states_, checkpoints_, pairs_;
};

}  // namespace tallybayes
