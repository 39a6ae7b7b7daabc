// Purposes and results of passes over sequences, and the pass in logarithms, for sequences whose probabilities have
// too wide a range for scaled probabilities.
#pragma once

#include "hmm/sample_paths.h"
#include "hmm/hmm_model.h"

namespace tallybayes {

enum class Goal { likelihood, filter, posterior, expected, draw };

struct Results {
  double* log_likelihood;  // one for each sequence
  double* rows = nullptr;  // one for each step
  ChainDraws draws = {};
};

// The sums of one part. Transitions are products without the transition probabilities from the fast loops (with many
// states in the layout of the panels), and complete from those in logarithms.
struct PartSums {
  Aligned<double> start, end, products, moves, levels;
  void clear(const ChainModel& model) {
    const size_t pitch = model.pitch, n_moves = model.input.n_states * pitch;
    for (Aligned<double>* sums : {&start, &end}) sums->resize(pitch);
    products.resize(model.wide() ? model.n_values : n_moves);
    moves.resize(n_moves);
    levels.resize(((model.input.coded() ? model.input.n_levels : 0) + 1) * pitch);
  }
};

class LogPass {
 public:
  LogPass(const ChainKernels& kernels, const ChainModel& model, Goal goal, const Results& results)
      : kernels_(kernels), model_(model), goal_(goal), results_(results), drawer_(model, results.draws),
        n_states_(model.input.n_states), pitch_(model.pitch) {}

  // All statistics of one sequence, this number of steps at a time, with this weight. `codes`: those of its steps.
  void run(size_t sequence, size_t n_at_once, double weight, const uint32_t* codes, PartSums& sums);

 private:
  ChainLogs stretch(size_t first, size_t n);
  double* result_row(size_t step) const {
    return results_.rows + (model_.first_step(sequence_) + step) * n_states_;
  }
  double forward();
  void backward(double weight, PartSums& sums);
  void write_row(const ChainLogs& logs, size_t first, PartSums& sums);

  const ChainKernels& kernels_;
  const ChainModel& model_;
  Goal goal_;
  Results results_;
  ChainDrawer drawer_;
  size_t n_states_, pitch_, sequence_ = 0, n_at_once_ = 1;
  const uint32_t* codes_ = nullptr;
  Room<double> rows_, maxima_, states_, checkpoints_, room_;
};

}  // namespace tallybayes
