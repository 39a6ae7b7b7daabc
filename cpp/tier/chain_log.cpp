// The same on logarithms, for sequences whose probabilities are too far apart for anything else. Every row is kept near
// 0 by taking out its maximum, so that no digits are lost however long the sequence.
#include "chain_loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

inline Doubles finite(Doubles x) { return keep(x, x > minus_infinity); }

// Σ exp and its logarithm, with the largest taken out: largest + log Σ exp(x − largest).
inline Doubles log_of_sum(Doubles largest, Doubles sum) {
  Doubles rest = sum - 1.0, exponent = {};
  move_exponent(rest, exponent);
  return choose(largest > minus_infinity, finite(largest) + log_product(rest, exponent), repeat(minus_infinity));
}

// out[v] = log Σ exp(x[i] + matrix[i][v])
inline void move_states(const double* x, const double* matrix, size_t n_states, size_t pitch, double* out) {
  for (size_t at = 0; at < pitch; at += lanes) {
    Doubles largest = repeat(minus_infinity);
    for (size_t i = 0; i < n_states; i++) largest = larger_of(largest, repeat(x[i]) + load(matrix + i * pitch + at));
    const Doubles middle = finite(largest);
    Doubles sum = {};
    for (size_t i = 0; i < n_states; i++) {
      sum += exp_of_negative((repeat(x[i]) + load(matrix + i * pitch + at)) - middle);
    }
    store(out + at, log_of_sum(largest, sum));
  }
}

inline Doubles largest_of(const double* x, size_t pitch) {
  Doubles largest = load(x);
  for (size_t at = lanes; at < pitch; at += lanes) largest = larger_of(largest, load(x + at));
  return spread_largest(largest);
}

inline const double* row_of(const ChainLogs& logs, size_t step) {
  const ptrdiff_t t = static_cast<ptrdiff_t>(step);
  return logs.rows + t * logs.stride.row + logs.codes[t * logs.stride.code] * logs.matrix->pitch;
}

}  // namespace

double log_forward(const ChainLogs& logs, double* states) {
  const size_t pitch = logs.matrix->pitch;
  double total = 0.0, rest = 0.0;
  for (size_t t = 0; t < logs.n_steps; t++, states += pitch) {
    const double *row = row_of(logs, t), *before = logs.start;
    if (t > 0) {
      move_states(states - pitch, logs.matrix->transition, logs.matrix->n_states, pitch, states);
      before = states;
    }
    for (size_t at = 0; at < pitch; at += lanes) store(states + at, load(before + at) + load(row + at));
    const Doubles largest = largest_of(states, pitch);
    if (!(largest[0] > minus_infinity)) {
      for (size_t k = 0; k < (logs.n_steps - t) * pitch; k++) states[k] = minus_infinity;
      return minus_infinity;
    }
    for (size_t at = 0; at < pitch; at += lanes) store(states + at, load(states + at) - largest);
    // Neumaier's sum
    const double moved = total + largest[0];
    const bool larger = (total < 0 ? -total : total) >= (largest[0] < 0 ? -largest[0] : largest[0]);
    rest += larger ? (total - moved) + largest[0] : (largest[0] - moved) + total;
    total = moved;
  }
  return total + rest;
}

void log_backward(const ChainLogs& logs, double* states, double weight, double* moves, double* room) {
  const size_t pitch = logs.matrix->pitch, n_states = logs.matrix->n_states;
  double *belief = room, *product = room + pitch, *joint = room + 2 * pitch;
  for (size_t at = 0; at < pitch; at += lanes) store(belief + at, load(logs.end + at));
  for (size_t t = logs.n_steps; t-- > 0;) {
    double* state = states + t * pitch;
    for (size_t at = 0; at < pitch; at += lanes) store(joint + at, load(state + at) + load(belief + at));
    const Doubles largest = largest_of(joint, pitch);
    const Doubles sum = sum_of_row(pitch / lanes, [&](size_t v) {
      return exp_of_negative(load(joint + v * lanes) - largest);
    });
    if (moves != nullptr && t + 1 < logs.n_steps) {
      // p(from, to) of this step and the next: `product` is still that of the next.
      const Doubles share = weight / sum;
      for (size_t i = 0; i < n_states; i++) {
        if (!(state[i] > minus_infinity)) continue;
        const Doubles from = repeat(state[i]) - largest;
        for (size_t at = 0; at < pitch; at += lanes) {
          const Doubles x = (from + load(logs.matrix->transition + i * pitch + at)) + load(product + at);
          double* to = moves + i * pitch + at;
          store(to, multiply_add(exp_of_negative(x), share, load(to)));
        }
      }
    }
    const Doubles share = weight / sum;
    for (size_t at = 0; at < pitch; at += lanes) {
      store(state + at, exp_of_negative(load(joint + at) - largest) * share);
    }
    if (t == 0) return;
    const double* row = row_of(logs, t);
    for (size_t at = 0; at < pitch; at += lanes) store(product + at, load(row + at) + load(belief + at));
    const Doubles middle = largest_of(product, pitch);
    for (size_t at = 0; at < pitch; at += lanes) store(product + at, load(product + at) - middle);
    move_states(product, logs.matrix->turned, n_states, pitch, belief);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
