// Chains of hidden states: what the loops of one instruction set offer.
//
// A vector holds several states of one step, so one long sequence is as welcome as many. A step waits for the one
// before it; several sequences are therefore taken in turns, and the waiting of one is the time of the others. What is
// computed for a sequence never depends on its company.
#pragma once

#include "bind/array_views.h"

namespace tallybayes {

// The transitions of a model of many states in panels of a few vectors of states to go to. For each of them: the states
// from which one of these can be reached, and how probably; all others are left out, so that a step costs what its
// transitions cost.
struct ChainPanels {
  size_t vectors = 0;             // of a panel, 1 or 2; 0: there are few states, and no panels
  size_t n_panels = 0;
  const size_t* begin = nullptr;  // n_panels + 1: the entries of each
  const uint32_t* from = nullptr;
  const double* values = nullptr;  // vectors · lanes of each entry
};

// A matrix of transitions. Rows of states are `pitch` numbers long, a whole number of vectors; beyond the states they
// hold 0 or, among logarithms, −inf.
struct ChainMatrix {
  size_t n_states, pitch;
  const double* transition;  // [from][to]
  const double* turned;      // [to][from]
  ChainPanels into, out_of;  // the same two in panels
};

// One of several threads that work on the same streams: each has some of the states, and they meet after every step.
struct ChainTeam {
  size_t member = 0, size = 1;
  void* meeting = nullptr;
  void (*wait)(void*) = nullptr;  // until all have come
};

// One sequence on its way. The pointers stand at the current step; the row of its emission is rows[codes[0] · pitch].
struct ChainStream {
  const uint32_t* codes;
  const double* rows;
  double* state;           // what the steps so far say of every state
  ptrdiff_t state_stride;  // to the next step's
  double* scale;           // what keeps the states near 1 (logarithms: near 0): the next one, or backward the last used
  double* belief;          // backward: what the later steps say of every state
  double* products;        // backward: emission · scale · belief of the current step goes here
  ptrdiff_t product_stride;
  double* out;             // backward: where the row of posterior probabilities goes, or the table of counts
  uint64_t watched[8];     // not 0 after a probability that became too small (forward) or a belief too large (certify)
  uint64_t* marks;         // best path of few states: byte i of a step has bit j where i leads to j with the best score
  int64_t best;            // trace: the state of the current step
  int64_t* path;
};

// How a stream moves through its emission: from code to code of a table, or from row to row.
struct ChainStride {
  ptrdiff_t code, row;
  bool keep;  // all states are kept; otherwise two places take turns
};

// A sequence, or a stretch of one, for the loops on logarithms, slow and safe.
struct ChainLogs {
  const ChainMatrix* matrix;
  const double *start, *end;
  const uint32_t* codes;
  const double* rows;
  ChainStride stride;
  size_t n_steps;
  bool first = true, last = true;  // whether the sequence begins here, and whether it ends here
};

// A sum and what its rounding has lost.
struct ChainTotal {
  double sum = 0.0, rest = 0.0;
};

// Steps whose products of states and beliefs are added up: rows of `pitch` numbers.
struct ChainPiece {
  const double *left, *right;
  size_t n_steps;
};

enum class ChainGoal : uint8_t { certify, counts, rows };

// Probabilities below this, relative to those of all states together, are not trusted to last.
constexpr double chain_tiny = 1e-100;
// Nor is a forward pass that may have lost states on its way, where the later steps speak this much in their favor.
constexpr double chain_huge = 1e150;
// Up to so many states, the best predecessors of a step are kept, as `marks`, and not the scores of its states.
constexpr size_t most_marked_states = 8;
// States are scaled once in so many steps.
constexpr size_t chain_interval = 4;
// Below this a state is dropped on the way back.
constexpr double chain_nothing = 1e-290;

// More states are many, and have panels.
constexpr size_t most_few_states = 64;
// So many steps' products of states and beliefs are added up together.
constexpr size_t chain_block = 64;
// The most sequences of many states that are moved together.
constexpr size_t most_wide_streams = 16;

struct ChainKernels {
  size_t lanes;

  // Codes as numbers in [0, size]; `size` for missing. False where a code is neither valid nor missing.
  bool (*load_levels)(const Column&, size_t first, size_t n, uint32_t size, uint32_t* out);
  // exp(row − its maximum) and the maxima; rows of −inf become 0 with maximum 0. `tiny`: a number that is not 0 but
  // below chain_tiny. False where there is NaN or +inf.
  bool (*exp_rows)(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima,
                   bool& tiny);
  // The same without exp, −inf beyond the states.
  bool (*shift_rows)(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima);
  // out = rows, each divided by its sum; 0 where that is 0.
  void (*share_rows)(const double* rows, size_t n_rows, size_t n_states, size_t pitch, double* out);

  // All: n_steps is a multiple of chain_interval, from and to such a multiple, or less than it; only in the former case
  // is there a scale, at the last of every chain_interval steps.
  void (*forward)(const ChainMatrix&, const ChainStride&, bool watch, ChainStream*, size_t n_streams, size_t n_steps,
                  const ChainTeam&);
  // Goes back a step, then tells of it.
  void (*backward)(const ChainMatrix&, const ChainStride&, ChainGoal, ChainStream*, size_t n_streams, size_t n_steps,
                   const ChainTeam&);
  void (*tell)(const ChainMatrix&, ChainGoal, const ChainStream&);
  // sums[from][to] += Σ left[step][from] · right[step][to]
  void (*add_products)(const double* left, const double* right, size_t n_steps, size_t n_states, size_t pitch,
                       double* sums);
  // The same for panels, of at most chain_block steps: the sums lie as the values do. `room`: chain_block · n_states.
  void (*wide_products)(const ChainMatrix&, const ChainPiece*, size_t n_pieces, double* room, double* sums,
                        const ChainTeam&);

  // Logarithms: the best score of every state, less scales that are added up. Of few states the marks of every step are
  // written, the first of them those of the step after the current one; trace reads them from the last on.
  void (*best_forward)(const ChainMatrix&, const ChainStride&, ChainStream*, size_t n_streams, size_t n_steps,
                       const ChainTeam&);
  void (*trace)(const ChainMatrix&, ChainStream*, size_t n_streams, size_t n_steps);

  // states[step] = log p(state, steps so far), less its maximum, and the maxima are added to `total`. `before`: the row
  // before the first step, or nullptr where the sequence begins. False from the first impossible step on, where states
  // are −inf.
  bool (*log_forward)(const ChainLogs&, const double* before, double* states, ChainTotal& total);
  // After log_forward of a possible sequence: `states` becomes the posterior probabilities times `weight`. Expected
  // transitions are added to `moves`, unless nullptr. `room`: three rows, which are kept between the stretches of a
  // sequence; these come last first.
  void (*log_backward)(const ChainLogs&, double* states, double weight, double* moves, double* room);
};

}  // namespace tallybayes
