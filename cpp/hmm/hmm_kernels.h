// Hidden Markov models: the functions of the inner loops for one instruction set.
//
// A vector holds several states of one step, so one long sequence is as efficient as many. A step depends on the
// previous one; several sequences are therefore interleaved to hide latency. The result of a sequence never depends on
// the others.
#pragma once

#include "bind/array_views.h"

namespace tallybayes {

// The transitions of a model with many states, in panels of a few vectors of target states. For each panel: the states
// from which one of its states can be reached, and the probabilities. Impossible transitions are left out, so that the
// cost of a step is proportional to the possible ones.
struct ChainPanels {
  size_t vectors = 0;  // of a panel, 1 or 2; 0: few states, without panels
  size_t n_panels = 0;
  const size_t* begin = nullptr;  // n_panels + 1: the entries of each
  const uint32_t* from = nullptr;
  const double* values = nullptr;  // vectors · lanes of each entry
};

// A transition matrix. Rows are `pitch` numbers long, a whole number of vectors, padded with 0 or, in logarithms,
// −inf.
struct ChainMatrix {
  size_t n_states, pitch;
  const double* transition;  // [from][to]
  const double* turned;      // [to][from]
  ChainPanels into, out_of;  // the same two in panels
};

// One of several threads that work on the same streams: each has some of the states, and they synchronize after every
// step.
struct ChainTeam {
  size_t member = 0, size = 1;
  void* meeting = nullptr;
  void (*wait)(void*) = nullptr;  // until all threads have arrived
};

// One sequence in progress. The pointers refer to the current step; the row of its emission is rows[codes[0] · pitch].
struct ChainStream {
  const uint32_t* codes;
  const double* rows;
  double* state;  // forward: probabilities of the states given the steps so far
  ptrdiff_t state_stride;  // scales that keep the states near 1 (logarithms: near 0): the next, or backward the last
  double* scale;  // scale factors that keep the states near 1 (logarithms: near 0): the next one, or backward the last used
  double* beta;  // backward: likelihood of the later steps given every state
  double* products;  // backward: output of emission · scale · beta of the current step
  ptrdiff_t product_stride;
  double* out;  // nonzero after too small a probability (forward) or too large a backward variable (certify)
  uint64_t watched[8];  // nonzero after a probability that became too small (forward) or a backward variable too large (certify)
  uint64_t* marks;  // Viterbi with few states: bit j of byte i is set if i is a best predecessor of j
  int64_t best;            // trace: the state of the current step
  int64_t* path;
};

// Layout of the emissions of a stream: codes of a table, or rows.
struct ChainStride {
  ptrdiff_t code, row;
  bool keep;  // all states are stored; otherwise two buffers alternate
};

// A sequence, or a part of one, for the slow and safe loops in logarithms.
struct ChainLogs {
  const ChainMatrix* matrix;
  const double *start, *end;
  const uint32_t* codes;
  const double* rows;
  ChainStride stride;
  size_t n_steps;
  bool first = true, last = true;  // whether the sequence begins here, and whether it ends here
};

// A sum and its rounding error.
struct ChainTotal {
  double sum = 0.0, rest = 0.0;
};

// Steps whose products of states and backward variables are summed: rows of `pitch` numbers.
struct ChainPiece {
  const double *left, *right;
  size_t n_steps;
};

enum class ChainGoal : uint8_t { certify, counts, rows };

// Probabilities below this, relative to the sum over all states, may be inaccurate.
constexpr double chain_tiny = 1e-100;
// A forward pass that may have lost states is inaccurate if the later steps favor them by this factor.
constexpr double chain_huge = 1e150;
// Up to this number of states, the best predecessors of a step are stored (as `marks`) instead of the scores.
constexpr size_t most_marked_states = 8;
// Number of steps between two scalings.
constexpr size_t chain_interval = 4;
// States below this are dropped in the backward pass.
constexpr double chain_nothing = 1e-290;

// Models with more states have panels.
constexpr size_t most_few_states = 64;
// Number of steps whose products of states and backward variables are summed at once.
constexpr size_t chain_block = 64;
// Maximum number of sequences with many states that are processed together.
constexpr size_t most_wide_streams = 16;

struct ChainKernels {
  size_t lanes;

  // Codes as numbers in [0, size]; `size` for missing. False if a code is neither valid nor missing.
  bool (*load_levels)(const Column&, size_t first, size_t n, uint32_t size, uint32_t* out);
  // exp(row − its maximum) and the maxima; rows of −inf become 0 with maximum 0. `tiny`: a nonzero number below
  // chain_tiny. False if there is NaN or +inf.
  bool (*exp_rows)(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima,
                   bool& tiny);
  // The same without exp, padded with −inf.
  bool (*shift_rows)(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima);
  // out = rows, each divided by its sum; 0 if the sum is 0.
  void (*share_rows)(const double* rows, size_t n_rows, size_t n_states, size_t pitch, double* out);

  // All: n_steps is a multiple of chain_interval, between such multiples, or less than it; only in the former case
  // there is a scale, at the last of every chain_interval steps.
  void (*forward)(const ChainMatrix&, const ChainStride&, bool watch, ChainStream*, size_t n_streams, size_t n_steps,
                  const ChainTeam&);
  // Performs a backward step, then writes the results of the step.
  void (*backward)(const ChainMatrix&, const ChainStride&, ChainGoal, ChainStream*, size_t n_streams, size_t n_steps,
                   const ChainTeam&);
  void (*write_row)(const ChainMatrix&, ChainGoal, const ChainStream&);
  // sums[from][to] += Σ left[step][from] · right[step][to]
  void (*add_products)(const double* left, const double* right, size_t n_steps, size_t n_states, size_t pitch,
                       double* sums);
  // The same for panels, of at most chain_block steps, in the layout of the values. `room`: chain_block · n_states.
  void (*wide_products)(const ChainMatrix&, const ChainPiece*, size_t n_pieces, double* room, double* sums,
                        const ChainTeam&);

  // Logarithms: the best score of every state, minus scales that are summed separately. With few states the marks of
  // every step are written, first those of the step after the current one; trace reads them from the last on.
  void (*best_forward)(const ChainMatrix&, const ChainStride&, ChainStream*, size_t n_streams, size_t n_steps,
                       const ChainTeam&);
  void (*trace)(const ChainMatrix&, ChainStream*, size_t n_streams, size_t n_steps);

  // states[step] = log p(state, steps so far) minus its maximum, and the maxima are added to `total`. `before`: the
  // row before the first step, or nullptr at the start of the sequence. False from the first impossible step on, where
  // states are −inf.
  bool (*log_forward)(const ChainLogs&, const double* before, double* states, ChainTotal& total);
  // After log_forward of a possible sequence: `states` becomes the posterior probabilities times `weight`. Expected
  // transitions are added to `moves`, unless nullptr. `room`: three rows, which are kept between the parts of a
  // sequence; these are processed in reverse order.
  void (*log_backward)(const ChainLogs&, double* states, double weight, double* moves, double* room);
};

}  // namespace tallybayes
