// The same in logarithms, for sequences whose probabilities have too wide a range. Every row is kept near 0 by
// subtracting its maximum, so that no digits are lost in long sequences.
#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

inline Doubles finite(Doubles x) { return keep(x, x > minus_infinity); }

// log Σ exp after subtracting the largest: largest + log Σ exp(x − largest).
inline Doubles log_of_sum(Doubles largest, Doubles sum) {
  Doubles rest = sum - 1.0, exponent = {};
  move_exponent(rest, exponent);
  return choose(largest > minus_infinity, finite(largest) + log_product(rest, exponent), repeat(minus_infinity));
}

// Calls visit(previous state, its vector of transitions) for the states with transitions to vector v.
template <class Visit>
inline void for_each_from(const ChainMatrix& matrix, const double* rows, const ChainPanels& panels, size_t v,
                          Visit visit) {
  if (panels.vectors == 0) {
    for (size_t i = 0; i < matrix.n_states; i++) visit(i, load(rows + i * matrix.pitch + v * lanes));
    return;
  }
  const size_t panel = v / panels.vectors, width = panels.vectors * lanes;
  const double* values = panels.values + v % panels.vectors * lanes;
  for (size_t e = panels.begin[panel]; e < panels.begin[panel + 1]; e++) visit(panels.from[e], load(values + e * width));
}

// out[v] = log Σ exp(x[i] + rows[i][v])
inline void move_states(const double* x, const ChainMatrix& matrix, const double* rows, const ChainPanels& panels,
                        double* out) {
  for (size_t v = 0; v < matrix.pitch / lanes; v++) {
    Doubles largest = repeat(minus_infinity);
    for_each_from(matrix, rows, panels, v, [&](size_t i, Doubles move) {
      largest = larger_of(largest, repeat(x[i]) + move);
    });
    const Doubles middle = finite(largest);
    Doubles sum = {};
    for_each_from(matrix, rows, panels, v, [&](size_t i, Doubles move) {
      sum += exp_of_negative((repeat(x[i]) + move) - middle);
    });
    store(out + v * lanes, log_of_sum(largest, sum));
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

bool log_forward(const ChainLogs& logs, const double* before, double* states, ChainTotal& total) {
  const ChainMatrix& matrix = *logs.matrix;
  const size_t pitch = matrix.pitch;
  for (size_t t = 0; t < logs.n_steps; t++, before = states, states += pitch) {
    const double *row = row_of(logs, t), *moved = logs.start;
    if (before != nullptr) {
      move_states(before, matrix, matrix.transition, matrix.into, states);
      moved = states;
    }
    for (size_t at = 0; at < pitch; at += lanes) store(states + at, load(moved + at) + load(row + at));
    const Doubles largest = largest_of(states, pitch);
    if (!(largest[0] > minus_infinity)) {
      for (size_t k = 0; k < (logs.n_steps - t) * pitch; k++) states[k] = minus_infinity;
      return false;
    }
    for (size_t at = 0; at < pitch; at += lanes) store(states + at, load(states + at) - largest);
    // Neumaier's compensated sum
    const double sum = total.sum, sum_of_both = sum + largest[0];
    const bool larger = (sum < 0 ? -sum : sum) >= (largest[0] < 0 ? -largest[0] : largest[0]);
    total.rest += larger ? (sum - sum_of_both) + largest[0] : (largest[0] - sum_of_both) + sum;
    total.sum = sum_of_both;
  }
  return true;
}

void log_backward(const ChainLogs& logs, double* states, double weight, double* moves, double* room) {
  const size_t pitch = logs.matrix->pitch;
  double *beta = room, *product = room + pitch, *joint = room + 2 * pitch;
  if (logs.last) {
    for (size_t at = 0; at < pitch; at += lanes) store(beta + at, load(logs.end + at));
  }
  for (size_t t = logs.n_steps; t-- > 0;) {
    double* state = states + t * pitch;
    for (size_t at = 0; at < pitch; at += lanes) store(joint + at, load(state + at) + load(beta + at));
    const Doubles largest = largest_of(joint, pitch);
    const Doubles sum = sum_of_row(pitch / lanes, [&](size_t v) {
      return exp_of_negative(load(joint + v * lanes) - largest);
    });
    if (moves != nullptr && !(logs.last && t + 1 == logs.n_steps)) {
      // p(from, to) of this step and the next: `product` is still that of the next.
      const Doubles share = weight / sum;
      for (size_t v = 0; v < pitch / lanes; v++) {
        const Doubles next = load(product + v * lanes);
        for_each_from(*logs.matrix, logs.matrix->transition, logs.matrix->into, v, [&](size_t i, Doubles move) {
          if (!(state[i] > minus_infinity)) return;
          const Doubles x = ((repeat(state[i]) - largest) + move) + next;
          double* to = moves + i * pitch + v * lanes;
          store(to, multiply_add(exp_of_negative(x), share, load(to)));
        });
      }
    }
    const Doubles share = weight / sum;
    for (size_t at = 0; at < pitch; at += lanes) {
      store(state + at, exp_of_negative(load(joint + at) - largest) * share);
    }
    if (t == 0 && logs.first) return;
    const double* row = row_of(logs, t);
    for (size_t at = 0; at < pitch; at += lanes) store(product + at, load(row + at) + load(beta + at));
    const Doubles middle = largest_of(product, pitch);
    for (size_t at = 0; at < pitch; at += lanes) store(product + at, load(product + at) - middle);
    move_states(product, *logs.matrix, logs.matrix->turned, logs.matrix->out_of, beta);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
