// Forward: what the steps so far say of every state.
#include "chain.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// 1 / the power of two in each lane, which is positive and finite. Exact, and its logarithms add up exactly.
inline Doubles inverse_power(Doubles x) { return (Doubles)((2046 - ((Mask)x >> 52)) << 52); }

template <size_t n_vectors, bool watch>
inline void step(const ChainMatrix& matrix, size_t pitch, const ChainStride& stride, ChainStream& stream) {
  const double* x = stream.state;
  double* y = stream.state + stream.state_stride;
  stream.state = y;
  if (!stride.keep) stream.state_stride = -stream.state_stride;
  stream.codes += stride.code;
  stream.rows += stride.row;
  const double* row = stream.rows + *stream.codes * pitch;

  Doubles sum = load(x);
  for (size_t v = 1; v < pitch / lanes; v++) sum += load(x + v * lanes);
  const Doubles scale = inverse_power(spread_sum(sum));
  *++stream.scale = scale[0];

  Mask doubtful = {};
  for_blocks<n_vectors>(pitch, [&](auto count, size_t first) {
    constexpr size_t n = decltype(count)::value;
    Doubles moved[n];
    multiply_rows<n>(x, matrix.transition + first * lanes, matrix.n_states, pitch, moved);
#pragma GCC unroll 8
    for (size_t v = 0; v < n; v++) {
      const Doubles state = moved[v] * (load(row + (first + v) * lanes) * scale);
      if constexpr (watch) doubtful |= (state > 0.0) & (state < chain_tiny);
      store(y + (first + v) * lanes, state);
    }
  });
  if constexpr (watch) mark(stream.watched, doubtful);
}

template <size_t n_vectors, bool watch>
void run(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams, size_t n_steps) {
  const size_t pitch = n_vectors ? n_vectors * lanes : matrix.pitch;
  for (size_t k = 0; k < n_steps; k++) {
    for (size_t g = 0; g < n_streams; g++) step<n_vectors, watch>(matrix, pitch, stride, streams[g]);
  }
}

}  // namespace

void chain_forward(const ChainMatrix& matrix, const ChainStride& stride, bool watch, ChainStream* streams,
                   size_t n_streams, size_t n_steps) {
  with_vectors(matrix.pitch / lanes, [&](auto count) {
    constexpr size_t n = decltype(count)::value;
    if (watch) return run<n, true>(matrix, stride, streams, n_streams, n_steps);
    run<n, false>(matrix, stride, streams, n_streams, n_steps);
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
