// The functions of one tier for hidden Markov models, and shared helpers.
#pragma once

#include "hmm/hmm_kernels.h"
#include "simd/log_exp.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

extern const ChainKernels chain_kernels;

bool load_levels(const Column&, size_t, size_t, uint32_t, uint32_t*);
bool exp_rows(const double*, size_t, size_t, double*, size_t, double*, bool&);
bool shift_rows(const double*, size_t, size_t, double*, size_t, double*);
void share_rows(const double*, size_t, size_t, size_t, double*);
void chain_forward(const ChainMatrix&, const ChainStride&, bool, ChainStream*, size_t, size_t, const ChainTeam&);
void chain_backward(const ChainMatrix&, const ChainStride&, ChainGoal, ChainStream*, size_t, size_t, const ChainTeam&);
void chain_write_row(const ChainMatrix&, ChainGoal, const ChainStream&);
void add_products(const double*, const double*, size_t, size_t, size_t, double*);
void best_forward(const ChainMatrix&, const ChainStride&, ChainStream*, size_t, size_t, const ChainTeam&);
void trace_best(const ChainMatrix&, ChainStream*, size_t, size_t);
bool log_forward(const ChainLogs&, const double*, double*, ChainTotal&);
void log_backward(const ChainLogs&, double*, double, double*, double*);
void wide_forward(const ChainMatrix&, const ChainStride&, bool, ChainStream*, size_t, size_t, const ChainTeam&);
void wide_best(const ChainMatrix&, const ChainStride&, ChainStream*, size_t, size_t, const ChainTeam&);
void wide_backward(const ChainMatrix&, const ChainStride&, ChainGoal, ChainStream*, size_t, size_t, const ChainTeam&);
void wide_products(const ChainMatrix&, const ChainPiece*, size_t, double*, double*, const ChainTeam&);

constexpr double minus_infinity = -__builtin_inf();

static inline Doubles larger_of(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_pd(0xff, a, b);  // the plain intrinsic triggers a false warning of GCC
#elif defined(__AVX2__)
  return _mm256_max_pd(a, b);
#elif defined(__SSE2__)
  return _mm_max_pd(a, b);
#else
  return choose(a > b, a, b);
#endif
}

// While it exists, subnormal numbers are flushed to 0: some processors are a hundred times slower for them.
class WithoutSubnormals {
#if defined(__SSE2__)
 public:
  WithoutSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~WithoutSubnormals() { _mm_setcsr(before_); }
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;

 private:
  unsigned before_;
#elif defined(__aarch64__)
 public:
  WithoutSubnormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" : : "r"(before_ | uint64_t{1} << 24) : "memory");
  }
  ~WithoutSubnormals() { __asm__ volatile("msr fpcr, %0" : : "r"(before_) : "memory"); }
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;

 private:
  uint64_t before_;
#else
 public:
  WithoutSubnormals() {}
#endif
};

// The sum of a row of n_vectors, given by at(v), in every lane.
template <class At>
static inline __attribute__((always_inline)) Doubles sum_of_row(size_t n_vectors, At at) {
  Doubles sum[vectors_of_eight];
#pragma GCC unroll 4
  for (size_t k = 0; k < vectors_of_eight; k++) sum[k] = k < n_vectors ? at(k) : Doubles{};
  for (size_t v = vectors_of_eight; v < n_vectors; v += vectors_of_eight) {
#pragma GCC unroll 4
    for (size_t k = 0; k < vectors_of_eight; k++) {
      if (v + k < n_vectors) sum[k] += at(v + k);
    }
  }
  return spread_sum(sum);
}
// The largest of all lanes in every lane.
static inline __attribute__((always_inline)) Doubles spread_largest(Doubles v) {
#if defined(__AVX512F__)
  v = larger_of(v, exchange<4>(v, EveryLane()));
#endif
#if defined(__AVX2__)
  v = larger_of(v, exchange<2>(v, EveryLane()));
#endif
  return larger_of(v, exchange<1>(v, EveryLane()));
}

static inline unsigned bits_of(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd((__m256d)mask));
#else
  return static_cast<unsigned>((mask[0] & 1) | (mask[1] & 2));
#endif
}

static inline unsigned bits_where_equal(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
#else
  return bits_of(a == b);
#endif
}

// Records whether a lane was marked.
static inline void mark(uint64_t* watched, Mask where) {
  typedef int64_t UnalignedMask __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
  *reinterpret_cast<UnalignedMask*>(watched) |= where;
}

// Writes these lanes only: memory beyond them may belong to another array.
static inline void store_part(double* p, Doubles v, Mask part) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(p, _mm512_movepi64_mask((__m512i)part), v);
#elif defined(__AVX2__)
  _mm256_maskstore_pd(p, (__m256i)part, v);
#else
  if (part[0]) p[0] = v[0];
  if (part[1]) p[1] = v[1];
#endif
}

// Rows of states as vectors: all but the last are full.
struct RowShape {
  size_t n_vectors;
  Mask last;
  explicit RowShape(size_t n_states)
      : n_vectors((n_states + lanes - 1) / lanes), last(first_lanes(n_states - (n_vectors - 1) * lanes)) {}
};

// The shape of a row as compile-time constants: its number of vectors and, up to eight, of states; 0 if unknown.
template <size_t n_vectors, size_t n_states>
struct Shape {
  static constexpr size_t vectors = n_vectors, states = n_states;
};
constexpr size_t most_vectors = 8;  // of sums, or of a matrix, in registers

// Calls f with the shape for this number of vectors, between `least` and `most`; with an unknown number if there are
// more than most_vectors.
template <size_t least = 1, size_t most = ~size_t{0}, class F>
static inline void with_vectors(size_t n_vectors, F f) {
  if constexpr (least > most_vectors) {
    f(Shape<0, 0>());
  } else if constexpr (least == most) {
    f(Shape<least, 0>());
  } else if (n_vectors == least) {
    f(Shape<least, 0>());
  } else {
    with_vectors<least + 1, most>(n_vectors, f);
  }
}

template <size_t n, class F>
static inline void with_states(F f) {
  constexpr size_t n_vectors = (n + lanes - 1) / lanes;
  f(Shape<n_vectors, n>());
}
template <class F>
static inline void with_shape(size_t n_states, F f) {
  switch (n_states) {
    case 1: return with_states<1>(f);
    case 2: return with_states<2>(f);
    case 3: return with_states<3>(f);
    case 4: return with_states<4>(f);
    case 5: return with_states<5>(f);
    case 6: return with_states<6>(f);
    case 7: return with_states<7>(f);
    case 8: return with_states<8>(f);
    default: return with_vectors<8 / lanes + 1, most_few_states / lanes>((n_states + lanes - 1) / lanes, f);
  }
}

// Two ways to combine the contributions of several states.
struct SumOfProducts {
  static constexpr bool marks = false;
  static inline Doubles nothing() { return Doubles{}; }
  static inline Doubles first(Doubles x, Doubles move) { return x * move; }
  static inline Doubles add(Doubles sum, Doubles x, Doubles move) { return multiply_add(x, move, sum); }
  static inline Doubles join(Doubles a, Doubles b) { return a + b; }
};
struct LargestOfSums {
  static constexpr bool marks = true;
  static inline Doubles nothing() { return repeat(minus_infinity); }
  static inline Doubles first(Doubles x, Doubles move) { return x + move; }
  static inline Doubles add(Doubles best, Doubles x, Doubles move) { return larger_of(best, x + move); }
  static inline Doubles join(Doubles a, Doubles b) { return larger_of(a, b); }
};

// Probabilities, scaled by powers of two: exact, and their logarithms are summed exactly.
struct AllPaths : SumOfProducts {
  static constexpr double no_scale = 1.0;
  static inline Doubles scale(const double* x, size_t n_vectors) {
    const Doubles sum = sum_of_row(n_vectors, [&](size_t v) { return load(x + v * lanes); });
    return (Doubles)((2046 - ((Mask)sum >> 52)) << 52);
  }
  static inline Doubles scaled(Doubles emitted, Doubles scale) { return emitted * scale; }
  static inline Doubles emit(Doubles moved, Doubles emitted) { return moved * emitted; }
};
// Logarithms, after subtracting the largest.
struct BestPath : LargestOfSums {
  static constexpr double no_scale = 0.0;
  static inline Doubles scale(const double* x, size_t n_vectors) {
    Doubles largest = load(x);
    for (size_t v = 1; v < n_vectors; v++) largest = larger_of(largest, load(x + v * lanes));
    largest = spread_largest(largest);
    return keep(largest, largest > minus_infinity);
  }
  static inline Doubles scaled(Doubles emitted, Doubles scale) { return emitted - scale; }
  static inline Doubles emit(Doubles moved, Doubles emitted) { return moved + emitted; }
};

// Writes part v of the posterior probabilities, or adds them to the counts of the step's level.
template <ChainGoal goal>
static inline void write_part(double* out, size_t v, size_t n_vectors, Mask last, Doubles state, Doubles beta) {
  double* at = out + v * lanes;
  if constexpr (goal == ChainGoal::counts) store(at, multiply_add(state, beta, load(at)));
  if constexpr (goal == ChainGoal::rows) {
    if (v + 1 < n_vectors) {
      store(at, state * beta);
    } else {
      store_part(at, state * beta, last);
    }
  }
}

// Multiplies a row of states by a matrix: calls then(v, Σ x[i] · matrix[i][v]) for every vector v. A small matrix is
// kept in registers. For few states and the maximum instead of the sum, byte i of *marks becomes the states whose best
// predecessor is i.
template <class Shape, class Join>
class Mover {
 public:
  Mover(const double* matrix, size_t n_states, size_t pitch) : matrix_(matrix), n_states_(n_states), pitch_(pitch) {
    if constexpr (kept) {
      for (size_t k = 0; k < Shape::states * Shape::vectors; k++) kept_[k] = load(matrix + k * lanes);
    }
  }

  static constexpr bool marks = Join::marks && Shape::states != 0;

  template <class Then>
  inline __attribute__((always_inline)) void operator()(const double* x, [[maybe_unused]] uint64_t* marked,
                                                        Then then) const {
    if constexpr (Shape::states != 0) {
      // Two partial sums, to hide the latency of additions.
      constexpr size_t n = Shape::vectors;
      Doubles sum[n], other[n];
#pragma GCC unroll 8
      for (size_t i = 0; i < Shape::states; i++) {
        const Doubles a = repeat(x[i]);
#pragma GCC unroll 8
        for (size_t v = 0; v < n; v++) {
          Doubles& to = i % 2 ? other[v] : sum[v];
          const Doubles move = kept ? kept_[kept ? i * n + v : 0] : load(matrix_ + (i * n + v) * lanes);
          to = i < 2 ? Join::first(a, move) : Join::add(to, a, move);
        }
      }
#pragma GCC unroll 8
      for (size_t v = 0; v < n; v++) {
        if (Shape::states > 1) sum[v] = Join::join(sum[v], other[v]);
        then(v, sum[v]);
      }
      if constexpr (marks) {
#pragma GCC unroll 8
        for (size_t i = 0; i < Shape::states; i++) {
          const Doubles a = repeat(x[i]);
          unsigned bits = 0;
#pragma GCC unroll 8
          for (size_t v = 0; v < n; v++) {
            const Doubles move = kept ? kept_[kept ? i * n + v : 0] : load(matrix_ + (i * n + v) * lanes);
            bits |= bits_where_equal(Join::first(a, move), sum[v]) << v * lanes;
          }
          reinterpret_cast<unsigned char*>(marked)[i] = static_cast<unsigned char>(bits);
        }
      }
    } else if constexpr (Shape::vectors != 0) {
      block<Shape::vectors>(x, 0, then);
    } else {
      const size_t n = pitch_ / lanes;
      size_t v = 0;
      for (; v + most_vectors <= n; v += most_vectors) block<most_vectors>(x, v, then);
      if (v < n) {
        with_vectors<1, most_vectors - 1>(n - v, [&](auto rest) { block<decltype(rest)::vectors>(x, v, then); });
      }
    }
  }

 private:
  static constexpr bool kept = Shape::states != 0 && Shape::states * Shape::vectors <= most_vectors;

  template <size_t n, class Then>
  inline __attribute__((always_inline)) void block(const double* x, size_t first, Then then) const {
    Doubles sum[n];
    const double* move = matrix_ + first * lanes;
#pragma GCC unroll 8
    for (size_t v = 0; v < n; v++) sum[v] = Join::nothing();
    for (size_t i = 0; i < n_states_; i++, move += pitch_) {
      const Doubles a = repeat(x[i]);
#pragma GCC unroll 8
      for (size_t v = 0; v < n; v++) sum[v] = Join::add(sum[v], a, load(move + v * lanes));
    }
#pragma GCC unroll 8
    for (size_t v = 0; v < n; v++) then(first + v, sum[v]);
  }

  const double* matrix_;
  size_t n_states_, pitch_;
  Doubles kept_[kept ? Shape::states * Shape::vectors : 1];
};

// A row of states between two steps: in registers if their number is known, otherwise in memory.
template <size_t n_vectors>
struct Row {
  Doubles part[n_vectors];
  explicit Row(double* from) {
#pragma GCC unroll 8
    for (size_t v = 0; v < n_vectors; v++) part[v] = load(from + v * lanes);
  }
  Doubles get(size_t v) const { return part[v]; }
  void set(size_t v, Doubles x) { part[v] = x; }
  void save(double* to) const {
#pragma GCC unroll 8
    for (size_t v = 0; v < n_vectors; v++) store(to + v * lanes, part[v]);
  }
};
template <>
struct Row<0> {
  double* at;
  explicit Row(double* from) : at(from) {}
  Doubles get(size_t v) const { return load(at + v * lanes); }
  void set(size_t v, Doubles x) { store(at + v * lanes, x); }
  void save(double*) const {}
};

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
