// Paths of states drawn from all that a sequence may have gone, from its last step back.
#pragma once

#include "hmm/hmm_model.h"

namespace tallybayes {

// Both (steps, n): numbers from 0 up to 1, and the states that are drawn by them.
struct ChainDraws {
  const double* uniform = nullptr;
  int64_t* paths = nullptr;
  size_t n = 0;
};

class ChainDrawer {
 public:
  ChainDrawer(const ChainModel& model, const ChainDraws& draws) : model_(model), draws_(draws) {}

  // The states of one step in all paths, which are drawn already in the step after it, unless this is the last one.
  // `state`: what the steps so far say of every state, as logarithms or not. False where no state is left.
  bool draw(const double* state, size_t step, bool last, bool logs);
  // Of a sequence that no path can have.
  void draw_none(size_t first_step, size_t n_steps);

 private:
  double add_up(const double* state, const double* after, bool logs);

  const ChainModel& model_;
  ChainDraws draws_;
  Vector upto_;
};

}  // namespace tallybayes
