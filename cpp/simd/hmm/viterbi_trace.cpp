// Backtracking along the Viterbi path. With many states only the scores are stored in the forward pass; the best
// predecessor of one state is recomputed, which is cheaper than storing it for every state. With few states, it was
// marked.
#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// The first state from which the current one is reached with the best score.
inline __attribute__((always_inline)) void step_back(const ChainMatrix& matrix, size_t pitch, ChainStream& stream) {
  stream.state -= stream.state_stride;
  const double *x = stream.state, *into = matrix.turned + static_cast<size_t>(stream.best) * pitch;
  const size_t n = pitch / lanes;
  Doubles best = load(x) + load(into);
  for (size_t v = 1; v < n; v++) best = larger_of(best, load(x + v * lanes) + load(into + v * lanes));
  best = spread_largest(best);
  size_t v = 0;
  unsigned equal = bits_where_equal(load(x) + load(into), best);
  while (!equal && ++v < n) equal = bits_where_equal(load(x + v * lanes) + load(into + v * lanes), best);
  stream.best = static_cast<int64_t>(v * lanes + static_cast<size_t>(__builtin_ctz(equal | 1u << lanes)));
  *--stream.path = stream.best;
}

// Bit j of byte i of the marks is set if i is a best predecessor of j; the first one is used.
inline void step_back_marked(ChainStream& stream) {
  uint64_t marks = *stream.marks--;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  marks = __builtin_bswap64(marks);
#endif
  const uint64_t from = (marks >> stream.best) & 0x0101010101010101;
  stream.best = static_cast<int64_t>(__builtin_ctzll(from | uint64_t{1} << 63)) / 8;
  *--stream.path = stream.best;
}

template <class Shape>
void run_back(const ChainMatrix& matrix, ChainStream* streams, size_t n_streams, size_t n_steps) {
  const size_t pitch = Shape::vectors ? Shape::vectors * lanes : matrix.pitch;
  for (size_t k = 0; k < n_steps; k++) {
    for (size_t g = 0; g < n_streams; g++) step_back(matrix, pitch, streams[g]);
  }
}

}  // namespace

void trace_best(const ChainMatrix& matrix, ChainStream* streams, size_t n_streams, size_t n_steps) {
  if (matrix.n_states <= most_marked_states) {
    for (size_t k = 0; k < n_steps; k++) {
      for (size_t g = 0; g < n_streams; g++) step_back_marked(streams[g]);
    }
    return;
  }
  with_vectors(matrix.pitch / lanes, [&](auto shape) {
    run_back<decltype(shape)>(matrix, streams, n_streams, n_steps);
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
