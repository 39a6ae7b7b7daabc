// Forward pass: the probability of the steps so far and every state, as a sum over paths or the maximum.
#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Some steps of one stream, scaled at the last one or not at all.
template <class Paths, bool watch, bool scaled, class Moves>
inline __attribute__((always_inline)) void run_stream(const Moves& move, size_t pitch, const ChainStride& stride,
                                                      ChainStream& stream, size_t n_steps) {
  const uint32_t* codes = stream.codes;
  const double* rows = stream.rows;
  double* state = stream.state;
  ptrdiff_t state_stride = stream.state_stride;
  Mask doubtful = {};
  for (size_t k = 0; k < n_steps; k++) {
    const double* x = state;
    double* y = state + state_stride;
    state = y;
    state_stride = stride.keep ? state_stride : -state_stride;
    codes += stride.code;
    rows += stride.row;
    const double* row = rows + *codes * pitch;
    const bool now = scaled && k + 1 == n_steps;
    Doubles scale = {};
    if (now) {
      scale = Paths::scale(x, pitch / lanes);
      *stream.scale++ = scale[0];
    }
    if constexpr (Moves::marks) stream.marks++;
    move(x, stream.marks, [&](size_t v, Doubles moved) {
      Doubles emitted = load(row + v * lanes);
      if (now) emitted = Paths::scaled(emitted, scale);
      const Doubles reached = Paths::emit(moved, emitted);
      if constexpr (watch) doubtful |= (reached > 0.0) & (reached < chain_tiny);
      store(y + v * lanes, reached);
    });
  }
  stream.codes = codes;
  stream.rows = rows;
  stream.state = state;
  stream.state_stride = state_stride;
  if constexpr (watch) mark(stream.watched, doubtful);
}

template <class Shape, class Paths, bool watch>
void run(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams, size_t n_steps) {
  const size_t pitch = Shape::vectors ? Shape::vectors * lanes : matrix.pitch;
  const Mover<Shape, Paths> move(matrix.transition, matrix.n_states, pitch);
  for (size_t k = 0; k < n_steps / chain_interval; k++) {
    for (size_t g = 0; g < n_streams; g++) {
      run_stream<Paths, watch, true>(move, pitch, stride, streams[g], chain_interval);
    }
  }
  for (size_t g = 0; g < n_streams; g++) {
    run_stream<Paths, watch, false>(move, pitch, stride, streams[g], n_steps % chain_interval);
  }
}

}  // namespace

void chain_forward(const ChainMatrix& matrix, const ChainStride& stride, bool watch, ChainStream* streams,
                   size_t n_streams, size_t n_steps, const ChainTeam& team) {
  const WithoutSubnormals while_here;
  if (matrix.into.vectors != 0) return wide_forward(matrix, stride, watch, streams, n_streams, n_steps, team);
  with_shape(matrix.n_states, [&](auto shape) {
    using Known = decltype(shape);
    if (watch) return run<Known, AllPaths, true>(matrix, stride, streams, n_streams, n_steps);
    run<Known, AllPaths, false>(matrix, stride, streams, n_streams, n_steps);
  });
}

void best_forward(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams,
                  size_t n_steps, const ChainTeam& team) {
  if (matrix.into.vectors != 0) return wide_best(matrix, stride, streams, n_streams, n_steps, team);
  with_shape(matrix.n_states, [&](auto shape) {
    run<decltype(shape), BestPath, false>(matrix, stride, streams, n_streams, n_steps);
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
