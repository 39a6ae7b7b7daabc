// Backward pass: the likelihood of the later steps given every state, and the posterior probabilities.
#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Some steps of one stream; only the first one may be scaled.
template <class Shape, ChainGoal goal, bool scaled, class Moves>
inline __attribute__((always_inline)) void run_stream(const Moves& move, size_t n_states, size_t pitch, Mask last,
                                                      const ChainStride& stride, ChainStream& stream, size_t n_steps) {
  const size_t n_vectors = pitch / lanes;
  const uint32_t* codes = stream.codes;
  const double* rows = stream.rows;
  double *state = stream.state, *product = stream.products, *out = stream.out;
  const ptrdiff_t state_stride = stream.state_stride, product_stride = stream.product_stride;
  Row<Shape::vectors> beta(stream.beta);
  Mask doubtful = {};
  for (size_t k = 0; k < n_steps; k++) {
    const double* row = rows + *codes * pitch;
    Doubles scale = repeat(1.0);
    if (scaled && k == 0) scale = repeat(*--stream.scale);
    for (size_t v = 0; v < n_vectors; v++) {
      Doubles emitted = load(row + v * lanes);
      if (scaled && k == 0) emitted *= scale;
      store(product + v * lanes, emitted * beta.get(v));
    }
    codes -= stride.code;
    rows -= stride.row;
    state -= state_stride;
    if (goal == ChainGoal::rows) out -= n_states;
    double* target = goal == ChainGoal::counts ? out + *codes * pitch : out;
    move(product, nullptr, [&](size_t v, Doubles moved) {
      if constexpr (goal == ChainGoal::certify) {
        doubtful |= ~(moved <= chain_huge);  // or NaN, from 0 · inf
      } else {
        const Doubles reached = load(state + v * lanes);
        moved = keep(moved, reached > chain_nothing);  // unreachable states may have an unbounded backward variable
        write_part<goal>(target, v, n_vectors, last, reached, moved);
      }
      beta.set(v, moved);
    });
    product += product_stride;
  }
  beta.save(stream.beta);
  stream.codes = codes;
  stream.rows = rows;
  stream.state = state;
  stream.products = product;
  stream.out = out;
  if constexpr (goal == ChainGoal::certify) mark(stream.watched, doubtful);
}

template <class Shape, ChainGoal goal>
void run(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams, size_t n_steps) {
  const size_t pitch = Shape::vectors ? Shape::vectors * lanes : matrix.pitch, n_states = matrix.n_states;
  const Mask last = RowShape(n_states).last;
  const Mover<Shape, SumOfProducts> move(matrix.turned, n_states, pitch);
  for (size_t k = 0; k < n_steps / chain_interval; k++) {
    for (size_t g = 0; g < n_streams; g++) {
      run_stream<Shape, goal, true>(move, n_states, pitch, last, stride, streams[g], chain_interval);
    }
  }
  for (size_t g = 0; g < n_streams; g++) {
    run_stream<Shape, goal, false>(move, n_states, pitch, last, stride, streams[g], n_steps % chain_interval);
  }
}

// n_rows × n_vectors sums in registers.
template <size_t n_rows, size_t n_vectors>
inline void multiply_tile(const double* left, const double* right, size_t n_steps, size_t pitch, double* sums) {
  Doubles sum[n_rows][n_vectors];
#pragma GCC unroll 8
  for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vectors; v++) sum[r][v] = load(sums + r * pitch + v * lanes);
  }
  for (size_t k = 0; k < n_steps; k++, left += pitch, right += pitch) {
    Doubles b[n_vectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vectors; v++) b[v] = load(right + v * lanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < n_rows; r++) {
      const Doubles a = repeat(left[r]);
#pragma GCC unroll 4
      for (size_t v = 0; v < n_vectors; v++) sum[r][v] = multiply_add(a, b[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vectors; v++) store(sums + r * pitch + v * lanes, sum[r][v]);
  }
}

#if defined(__AVX512F__)
constexpr size_t tile_rows = 8, tile_vectors = 2;
#else
constexpr size_t tile_rows = 4, tile_vectors = 2;
#endif

template <size_t n_vectors>
inline void multiply_column(const double* left, const double* right, size_t n_steps, size_t n_states, size_t pitch,
                            double* sums) {
  size_t i = 0;
  for (; i + tile_rows <= n_states; i += tile_rows) {
    multiply_tile<tile_rows, n_vectors>(left + i, right, n_steps, pitch, sums + i * pitch);
  }
  left += i;
  sums += i * pitch;
  switch (n_states - i) {
    case 7: return multiply_tile<7, n_vectors>(left, right, n_steps, pitch, sums);
    case 6: return multiply_tile<6, n_vectors>(left, right, n_steps, pitch, sums);
    case 5: return multiply_tile<5, n_vectors>(left, right, n_steps, pitch, sums);
    case 4: return multiply_tile<4, n_vectors>(left, right, n_steps, pitch, sums);
    case 3: return multiply_tile<3, n_vectors>(left, right, n_steps, pitch, sums);
    case 2: return multiply_tile<2, n_vectors>(left, right, n_steps, pitch, sums);
    case 1: return multiply_tile<1, n_vectors>(left, right, n_steps, pitch, sums);
    default: return;
  }
}

template <ChainGoal goal>
void run_any(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams,
             size_t n_steps) {
  with_shape(matrix.n_states, [&](auto shape) {
    run<decltype(shape), goal>(matrix, stride, streams, n_streams, n_steps);
  });
}

}  // namespace

void chain_backward(const ChainMatrix& matrix, const ChainStride& stride, ChainGoal goal, ChainStream* streams,
                    size_t n_streams, size_t n_steps, const ChainTeam& team) {
  const WithoutSubnormals while_here;
  if (matrix.out_of.vectors != 0) return wide_backward(matrix, stride, goal, streams, n_streams, n_steps, team);
  switch (goal) {
    case ChainGoal::certify: return run_any<ChainGoal::certify>(matrix, stride, streams, n_streams, n_steps);
    case ChainGoal::counts: return run_any<ChainGoal::counts>(matrix, stride, streams, n_streams, n_steps);
    case ChainGoal::rows: return run_any<ChainGoal::rows>(matrix, stride, streams, n_streams, n_steps);
  }
}

void chain_write_row(const ChainMatrix& matrix, ChainGoal goal, const ChainStream& stream) {
  const RowShape shape(matrix.n_states);
  for (size_t v = 0; v < shape.n_vectors; v++) {
    const Doubles state = load(stream.state + v * lanes), beta = load(stream.beta + v * lanes);
    if (goal == ChainGoal::rows) {
      write_part<ChainGoal::rows>(stream.out, v, shape.n_vectors, shape.last, state, beta);
    } else {
      double* target = stream.out + *stream.codes * matrix.pitch;
      write_part<ChainGoal::counts>(target, v, shape.n_vectors, shape.last, state, beta);
    }
  }
}

void add_products(const double* left, const double* right, size_t n_steps, size_t n_states, size_t pitch,
                  double* sums) {
  const size_t n = pitch / lanes;
  size_t v = 0;
  for (; v + tile_vectors <= n; v += tile_vectors) {
    multiply_column<tile_vectors>(left, right + v * lanes, n_steps, n_states, pitch, sums + v * lanes);
  }
  if (v < n) multiply_column<1>(left, right + v * lanes, n_steps, n_states, pitch, sums + v * lanes);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
