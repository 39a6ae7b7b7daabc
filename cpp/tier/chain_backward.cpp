// Backward: what the later steps say of every state, and with it the posterior probabilities.
#include "chain.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Posterior probabilities of the current step: written as a row that adds up to the weight, or added to the counts of
// the step's level. Without its beliefs a state that was dropped contributes nothing.
template <size_t n_vectors, ChainGoal goal>
inline void tell_step(size_t pitch, size_t n_states, const ChainStream& stream) {
  const size_t n = pitch / lanes;
  if constexpr (goal == ChainGoal::counts) {
    double* counts = stream.out + *stream.codes * pitch;
    for (size_t v = 0; v < n; v++) {
      double* at = counts + v * lanes;
      store(at, multiply_add(load(stream.state + v * lanes), load(stream.belief + v * lanes), load(at)));
    }
  }
  if constexpr (goal == ChainGoal::rows) {
    Doubles sum = load(stream.state) * load(stream.belief);
    for (size_t v = 1; v < n; v++) sum = multiply_add(load(stream.state + v * lanes), load(stream.belief + v * lanes), sum);
    const Doubles share = stream.weight / spread_sum(sum);
    for (size_t v = 0; v < n; v++) {
      const Doubles part = load(stream.state + v * lanes) * load(stream.belief + v * lanes) * share;
      if (v + 1 < n) {
        store(stream.out + v * lanes, part);
      } else {
        store_part(stream.out + v * lanes, part, first_lanes(n_states - v * lanes));
      }
    }
  }
}

template <size_t n_vectors, ChainGoal goal>
inline void step(const ChainMatrix& matrix, size_t pitch, const ChainStride& stride, ChainStream& stream) {
  tell_step<n_vectors, goal>(pitch, matrix.n_states, stream);
  const double* row = stream.rows + *stream.codes * pitch;
  const Doubles scale = repeat(*stream.scale--);
  double* product = stream.products;
  for (size_t v = 0; v < pitch / lanes; v++) {
    store(product + v * lanes, load(row + v * lanes) * scale * load(stream.belief + v * lanes));
  }
  stream.products += stream.product_stride;
  stream.codes -= stride.code;
  stream.rows -= stride.row;
  stream.state -= stream.state_stride;
  if constexpr (goal == ChainGoal::rows) stream.out -= matrix.n_states;

  for_blocks<n_vectors>(pitch, [&](auto count, size_t first) {
    constexpr size_t n = decltype(count)::value;
    Doubles belief[n];
    multiply_rows<n>(product, matrix.turned + first * lanes, matrix.n_states, pitch, belief);
#pragma GCC unroll 8
    for (size_t v = 0; v < n; v++) {
      const size_t at = (first + v) * lanes;
      if constexpr (goal == ChainGoal::certify) {
        // Written so that NaN, from 0 · inf, counts as too large.
        mark(stream.watched, ~(belief[v] <= chain_huge));
      } else {
        // A state that cannot be reached may be believed in without limit.
        belief[v] = keep(belief[v], load(stream.state + at) > chain_nothing);
      }
      store(stream.belief + at, belief[v]);
    }
  });
}

template <size_t n_vectors, ChainGoal goal>
void run(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n_streams, size_t n_steps) {
  const size_t pitch = n_vectors ? n_vectors * lanes : matrix.pitch;
  for (size_t k = 0; k < n_steps; k++) {
    for (size_t g = 0; g < n_streams; g++) step<n_vectors, goal>(matrix, pitch, stride, streams[g]);
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
  with_vectors(matrix.pitch / lanes, [&](auto count) {
    run<decltype(count)::value, goal>(matrix, stride, streams, n_streams, n_steps);
  });
}

}  // namespace

void chain_backward(const ChainMatrix& matrix, const ChainStride& stride, ChainGoal goal, ChainStream* streams,
                    size_t n_streams, size_t n_steps) {
  switch (goal) {
    case ChainGoal::certify: return run_any<ChainGoal::certify>(matrix, stride, streams, n_streams, n_steps);
    case ChainGoal::counts: return run_any<ChainGoal::counts>(matrix, stride, streams, n_streams, n_steps);
    case ChainGoal::rows: return run_any<ChainGoal::rows>(matrix, stride, streams, n_streams, n_steps);
  }
}

void chain_tell(const ChainMatrix& matrix, ChainGoal goal, const ChainStream& stream) {
  if (goal == ChainGoal::counts) tell_step<0, ChainGoal::counts>(matrix.pitch, matrix.n_states, stream);
  if (goal == ChainGoal::rows) tell_step<0, ChainGoal::rows>(matrix.pitch, matrix.n_states, stream);
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
