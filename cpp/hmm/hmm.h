// Hidden Markov models: many sequences, one model.
//
// Probabilities are scaled by powers of two to stay near 1. If underflow may have lost a relevant state, the sequence
// is repeated in logarithms:
//  - if every transition is possible, no state can be lost, because each receives probability in every step;
//  - if no nonzero probability was tiny on the way, zeros are those of the model;
//  - otherwise the backward pass shows whether later steps depend on what was lost. (Filtering may not use later
// steps;
//    there, suspicion is enough.)
#pragma once

#include "hmm/hmm_kernels.h"
#include "core/driver_types.h"

namespace tallybayes {

// Log probabilities, and the concatenated sequences. Emission: codes and a table (n_levels, n_states), or an array
// (steps, n_states).
struct ChainInput {
  size_t n_states = 0;
  const double* start = nullptr;
  const double* transition = nullptr;
  const double* end = nullptr;  // nullptr: a sequence may end in any state
  Column codes;
  size_t n_levels = 0;
  const double* table = nullptr;
  const double* emission = nullptr;
  const int64_t* offsets = nullptr;  // n_sequences + 1
  size_t n_sequences = 0;
  const double* weight = nullptr;  // n_sequences, or nullptr: 1
  bool coded() const { return emission == nullptr; }
  size_t n_steps() const { return static_cast<size_t>(offsets[n_sequences]); }
};

struct ChainSums {
  Vector start, transition, end;  // n_states, n_states², n_states
  Vector levels;                  // n_levels × n_states, for codes
};

// Each returns false if a code is neither valid nor missing, or an emission is NaN or +inf.
bool chain_log_likelihood(const ChainKernels&, const ChainInput&, size_t threads, double* log_likelihood);
bool chain_best_path(const ChainKernels&, const ChainInput&, size_t threads, int64_t* path, double* score);
bool chain_filter(const ChainKernels&, const ChainInput&, size_t threads, double* rows, double* log_likelihood);
bool chain_posterior(const ChainKernels&, const ChainInput&, size_t threads, double* rows, double* log_likelihood);
// The best paths of every sequence: (steps, n_paths), best first, and their scores, (sequences, n_paths). −1 and −inf
// if there are fewer.
bool chain_best_paths(const ChainKernels&, const ChainInput&, size_t threads, size_t n_paths, int64_t* paths,
                      double* score);
// Paths drawn by uniform random numbers in [0, 1), both (steps, n_paths); −1 if the sequence is impossible.
bool chain_draw_paths(const ChainKernels&, const ChainInput&, size_t threads, size_t n_paths, const double* uniform,
                      int64_t* paths, double* log_likelihood);
// `rows`: nullptr for codes.
bool chain_expected(const ChainKernels&, const ChainInput&, size_t threads, double* rows, ChainSums&,
                    double* log_likelihood);

}  // namespace tallybayes
