// Backward sampling of state sequences from their posterior distribution.
#pragma once

#include "hmm/hmm_model.h"

namespace tallybayes {

// Both (steps, n): uniform random numbers in [0, 1), and the drawn states.
struct ChainDraws {
  const double* uniform = nullptr;
  int64_t* paths = nullptr;
  size_t n = 0;
};

class ChainDrawer {
 public:
  ChainDrawer(const ChainModel& model, const ChainDraws& draws) : model_(model), draws_(draws) {}

  // Draws the states of one step in all paths, given those of the next step unless this is the last one. `state`:
  // forward probabilities, as logarithms or not. False if no state is possible.
  bool draw(const double* state, size_t step, bool last, bool logs);
  // For a sequence without possible paths.
  void draw_none(size_t first_step, size_t n_steps);

 private:
  double add_up(const double* state, const double* after, bool logs);

  const ChainModel& model_;
  ChainDraws draws_;
  Vector upto_;
};

}  // namespace tallybayes
