// Many states: several sequences are processed at once, so that a transition is read once for all of them, and
// impossible transitions are skipped. The sums of every sequence are computed in the order of the states, as if it
// were processed alone with all transitions; skipping a 0 changes no bit.
#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

#if defined(__AVX512F__)
constexpr size_t most_together = 8;  // sequences, or states, whose sums are kept in registers
#else
constexpr size_t most_together = 4;
#endif
constexpr size_t panels_alone = 4;  // of one sequence: this many independent sums hide the latency

// The portion of n items of one thread of a team.
struct Share {
  size_t first, last;
  Share(size_t n, const ChainTeam& team) : first(n * team.member / team.size), last(n * (team.member + 1) / team.size) {}
};

inline void meet(const ChainTeam& team) {
  if (team.size > 1) team.wait(team.meeting);
}

// Calls then(sequence, vector, sum) for the vectors of one panel, where x are the sequences' rows of states.
template <class Join, size_t n_vectors, size_t n, class Then>
inline __attribute__((always_inline)) void move_panel(const ChainPanels& panels, size_t panel, const double* const* x,
                                                      Then then) {
  Doubles sum[n][n_vectors];
#pragma GCC unroll 8
  for (size_t g = 0; g < n; g++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) sum[g][v] = Join::nothing();
  }
  const double* values = panels.values + panels.begin[panel] * n_vectors * lanes;
  for (size_t e = panels.begin[panel]; e < panels.begin[panel + 1]; e++, values += n_vectors * lanes) {
    const size_t from = panels.from[e];
    Doubles move[n_vectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) move[v] = load(values + v * lanes);
#pragma GCC unroll 8
    for (size_t g = 0; g < n; g++) {
      const Doubles a = repeat(x[g][from]);
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) sum[g][v] = Join::add(sum[g][v], a, move[v]);
    }
  }
#pragma GCC unroll 8
  for (size_t g = 0; g < n; g++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) then(g, panel * n_vectors + v, sum[g][v]);
  }
}

// The same for one sequence and several panels that contain every state.
template <class Join, size_t n_vectors, class Then>
inline __attribute__((always_inline)) void move_alone(const ChainPanels& panels, size_t panel, size_t n_states,
                                                      const double* x, Then then) {
  constexpr size_t n = panels_alone;
  Doubles sum[n][n_vectors];
  const double* values[n];
#pragma GCC unroll 4
  for (size_t k = 0; k < n; k++) {
    values[k] = panels.values + panels.begin[panel + k] * n_vectors * lanes;
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) sum[k][v] = Join::nothing();
  }
  for (size_t i = 0; i < n_states; i++) {
    const Doubles a = repeat(x[i]);
#pragma GCC unroll 4
    for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) {
        sum[k][v] = Join::add(sum[k][v], a, load(values[k] + (i * n_vectors + v) * lanes));
      }
    }
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < n; k++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) then(0, (panel + k) * n_vectors + v, sum[k][v]);
  }
}

// Multiplies the rows of n sequences by some of the panels.
template <class Join, size_t n_vectors, class Then>
inline __attribute__((always_inline)) void move_rows(const ChainPanels& panels, const Share& share, size_t n_states,
                                                     const double* const* x, size_t n, Then then) {
  const size_t n_entries = panels.begin[share.last] - panels.begin[share.first];
  size_t panel = share.first;
  if (n == 1 && n_entries == (share.last - share.first) * n_states) {
    for (; panel + panels_alone <= share.last; panel += panels_alone) {
      move_alone<Join, n_vectors>(panels, panel, n_states, x[0], then);
    }
  }
  for (; panel < share.last; panel++) {
    size_t g = 0;
    const auto some = [&](size_t k, size_t v, Doubles sum) { then(g + k, v, sum); };
    for (; g + most_together <= n; g += most_together) {
      move_panel<Join, n_vectors, most_together>(panels, panel, x + g, some);
    }
    if (most_together > 4 && g + 4 <= n) {
      move_panel<Join, n_vectors, 4>(panels, panel, x + g, some);
      g += 4;
    }
    if (g + 2 <= n) {
      move_panel<Join, n_vectors, 2>(panels, panel, x + g, some);
      g += 2;
    }
    if (g < n) move_panel<Join, n_vectors, 1>(panels, panel, x + g, some);
  }
}

// A sequence in progress, as one thread of the team processes it.
struct Walk {
  const uint32_t* codes;
  const double* rows;
  double* state;
  ptrdiff_t state_stride;
  double* scale;
  double* product;
  double* out;
  Mask doubtful;
  explicit Walk(const ChainStream& stream)
      : codes(stream.codes), rows(stream.rows), state(stream.state), state_stride(stream.state_stride),
        scale(stream.scale), product(stream.products), out(stream.out), doubtful{} {}
  Walk() = default;
};

// All threads have recorded their marks; one of them sets the streams to the positions reached.
inline void finish(const Walk* walks, ChainStream* streams, size_t n, const ChainTeam& team) {
  meet(team);
  for (size_t g = 0; g < n; g++) {
    if (bits_of(walks[g].doubtful) != 0) __atomic_fetch_or(streams[g].watched, uint64_t{1}, __ATOMIC_RELAXED);
    if (team.member != 0) continue;
    streams[g].codes = walks[g].codes;
    streams[g].rows = walks[g].rows;
    streams[g].state = walks[g].state;
    streams[g].state_stride = walks[g].state_stride;
    streams[g].scale = walks[g].scale;
    streams[g].products = walks[g].product;
    streams[g].out = walks[g].out;
  }
}

template <class Paths, size_t n_vectors>
void walk_forward(const ChainPanels& panels, const ChainMatrix& matrix, const ChainStride& stride, bool watch,
                  ChainStream* streams, size_t n, size_t n_steps, const ChainTeam& team) {
  const size_t pitch = matrix.pitch, n_all = pitch / lanes;
  const Share share(panels.n_panels, team);
  Walk walks[most_wide_streams];
  const double *x[most_wide_streams], *emitted[most_wide_streams];
  Doubles scale[most_wide_streams];
  for (size_t g = 0; g < n; g++) walks[g] = Walk(streams[g]);
  for (size_t k = 0; k < n_steps; k++) {
    const bool now = k % chain_interval + 1 == chain_interval;
    for (size_t g = 0; g < n; g++) {
      Walk& walk = walks[g];
      x[g] = walk.state;
      scale[g] = repeat(Paths::no_scale);
      if (now) {
        scale[g] = Paths::scale(x[g], n_all);
        if (team.member == 0) *walk.scale = scale[g][0];
        walk.scale++;
      }
      walk.state += walk.state_stride;
      walk.state_stride = stride.keep ? walk.state_stride : -walk.state_stride;
      walk.codes += stride.code;
      walk.rows += stride.row;
      emitted[g] = walk.rows + *walk.codes * pitch;
    }
    move_rows<Paths, n_vectors>(panels, share, matrix.n_states, x, n, [&](size_t g, size_t v, Doubles moved) {
      if (v >= n_all) return;
      const Doubles reached = Paths::emit(moved, Paths::scaled(load(emitted[g] + v * lanes), scale[g]));
      if (watch) walks[g].doubtful |= (reached > 0.0) & (reached < chain_tiny);
      store(walks[g].state + v * lanes, reached);
    });
    meet(team);
  }
  finish(walks, streams, n, team);
}

template <ChainGoal goal, size_t n_vectors>
void walk_backward(const ChainPanels& panels, const ChainMatrix& matrix, const ChainStride& stride,
                   ChainStream* streams, size_t n, size_t n_steps, const ChainTeam& team) {
  const size_t pitch = matrix.pitch, n_all = pitch / lanes;
  const Mask last = RowShape(matrix.n_states).last;
  const Share share(panels.n_panels, team);
  Walk walks[most_wide_streams];
  const double* x[most_wide_streams];
  for (size_t g = 0; g < n; g++) walks[g] = Walk(streams[g]);
  for (size_t k = 0; k < n_steps; k++) {
    const bool now = n_steps >= chain_interval && k % chain_interval == 0;
    for (size_t g = 0; g < n; g++) {
      Walk& walk = walks[g];
      const double *row = walk.rows + *walk.codes * pitch, *beta = streams[g].beta;
      const Doubles scale = repeat(now ? *--walk.scale : 1.0);
      for (size_t v = share.first * n_vectors; v < smaller(share.last * n_vectors, n_all); v++) {
        store(walk.product + v * lanes, load(row + v * lanes) * scale * load(beta + v * lanes));
      }
      x[g] = walk.product;
      walk.product += streams[g].product_stride;
      walk.codes -= stride.code;
      walk.rows -= stride.row;
      walk.state -= walk.state_stride;
      if (goal == ChainGoal::rows) walk.out -= matrix.n_states;
    }
    meet(team);
    move_rows<SumOfProducts, n_vectors>(panels, share, matrix.n_states, x, n, [&](size_t g, size_t v, Doubles moved) {
      if (v >= n_all) return;
      Walk& walk = walks[g];
      if constexpr (goal == ChainGoal::certify) {
        walk.doubtful |= ~(moved <= chain_huge);
      } else {
        const Doubles reached = load(walk.state + v * lanes);
        moved = keep(moved, reached > chain_nothing);
        write_part<goal>(goal == ChainGoal::counts ? walk.out + *walk.codes * pitch : walk.out, v, n_all, last, reached,
                        moved);
      }
      store(streams[g].beta + v * lanes, moved);
    });
  }
  finish(walks, streams, n, team);
}

template <class Use>
inline void with_panels(const ChainPanels& panels, Use use) {
  if (panels.vectors == 1) return use(Shape<1, 0>());
  use(Shape<2, 0>());
}

// sums of n entries += Σ left[from][step] · right[step]
template <size_t n, size_t n_vectors>
inline void add_entries(const double* left, const uint32_t* from, const Doubles* right, size_t n_steps, double* sums) {
  Doubles sum[n][n_vectors];
  const double* a[n];
#pragma GCC unroll 8
  for (size_t r = 0; r < n; r++) {
    a[r] = left + from[r] * chain_block;
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) sum[r][v] = load(sums + (r * n_vectors + v) * lanes);
  }
  for (size_t t = 0; t < n_steps; t++) {
#pragma GCC unroll 8
    for (size_t r = 0; r < n; r++) {
      const Doubles x = repeat(a[r][t]);
#pragma GCC unroll 2
      for (size_t v = 0; v < n_vectors; v++) sum[r][v] = multiply_add(x, right[t * n_vectors + v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < n; r++) {
#pragma GCC unroll 2
    for (size_t v = 0; v < n_vectors; v++) store(sums + (r * n_vectors + v) * lanes, sum[r][v]);
  }
}

}  // namespace

void wide_forward(const ChainMatrix& matrix, const ChainStride& stride, bool watch, ChainStream* streams, size_t n,
                  size_t n_steps, const ChainTeam& team) {
  with_panels(matrix.into, [&](auto shape) {
    walk_forward<AllPaths, decltype(shape)::vectors>(matrix.into, matrix, stride, watch, streams, n, n_steps, team);
  });
}

void wide_best(const ChainMatrix& matrix, const ChainStride& stride, ChainStream* streams, size_t n, size_t n_steps,
               const ChainTeam& team) {
  with_panels(matrix.into, [&](auto shape) {
    walk_forward<BestPath, decltype(shape)::vectors>(matrix.into, matrix, stride, false, streams, n, n_steps, team);
  });
}

void wide_backward(const ChainMatrix& matrix, const ChainStride& stride, ChainGoal goal, ChainStream* streams,
                   size_t n, size_t n_steps, const ChainTeam& team) {
  with_panels(matrix.out_of, [&](auto shape) {
    constexpr size_t v = decltype(shape)::vectors;
    switch (goal) {
      case ChainGoal::certify:
        return walk_backward<ChainGoal::certify, v>(matrix.out_of, matrix, stride, streams, n, n_steps, team);
      case ChainGoal::counts:
        return walk_backward<ChainGoal::counts, v>(matrix.out_of, matrix, stride, streams, n, n_steps, team);
      case ChainGoal::rows:
        return walk_backward<ChainGoal::rows, v>(matrix.out_of, matrix, stride, streams, n, n_steps, team);
    }
  });
}

void wide_products(const ChainMatrix& matrix, const ChainPiece* pieces, size_t n_pieces, double* room, double* sums,
                   const ChainTeam& team) {
  const ChainPanels& panels = matrix.into;
  const size_t pitch = matrix.pitch;
  const Share states(matrix.n_states, team), share(panels.n_panels, team);
  size_t n_steps = 0;
  for (size_t k = 0; k < n_pieces; k++) {
    const double* left = pieces[k].left;
    for (size_t t = 0; t < pieces[k].n_steps; t++, left += pitch, n_steps++) {
      for (size_t i = states.first; i < states.last; i++) room[i * chain_block + n_steps] = left[i];
    }
  }
  meet(team);
  with_panels(panels, [&](auto shape) {
    constexpr size_t n_vectors = decltype(shape)::vectors, width = n_vectors * lanes;
    Doubles packed[chain_block * n_vectors];
    for (size_t panel = share.first; panel < share.last; panel++) {
      size_t at = 0;
      for (size_t k = 0; k < n_pieces; k++) {
        const double* right = pieces[k].right + panel * width;
        for (size_t t = 0; t < pieces[k].n_steps; t++, right += pitch) {
          packed[at++] = load(right);
          if (n_vectors == 2) packed[at++] = panel * width + lanes < pitch ? load(right + lanes) : Doubles{};
        }
      }
      size_t e = panels.begin[panel];
      const size_t end = panels.begin[panel + 1];
      for (; e + most_together <= end; e += most_together) {
        add_entries<most_together, n_vectors>(room, panels.from + e, packed, n_steps, sums + e * width);
      }
      for (; e + 2 <= end; e += 2) {
        add_entries<2, n_vectors>(room, panels.from + e, packed, n_steps, sums + e * width);
      }
      if (e < end) add_entries<1, n_vectors>(room, panels.from + e, packed, n_steps, sums + e * width);
    }
  });
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
