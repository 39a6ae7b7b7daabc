// The functions of one tier on chains of hidden states, and what they share.
#pragma once

#include "../chain_kernels.h"
#include "logarithms.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

extern const ChainKernels chain_kernels;

bool load_levels(const Column&, size_t, size_t, uint32_t, uint32_t*);
bool exp_rows(const double*, size_t, size_t, double*, size_t, double*, bool&);
bool shift_rows(const double*, size_t, size_t, double*, size_t, double*);
void share_rows(const double*, size_t, size_t, size_t, double*);
void chain_forward(const ChainMatrix&, const ChainStride&, bool, ChainStream*, size_t, size_t);
void chain_backward(const ChainMatrix&, const ChainStride&, ChainGoal, ChainStream*, size_t, size_t);
void chain_tell(const ChainMatrix&, ChainGoal, const ChainStream&);
void add_products(const double*, const double*, size_t, size_t, size_t, double*);
void best_forward(const ChainMatrix&, const ChainStride&, ChainStream*, size_t, size_t);
void trace_best(const ChainMatrix&, ChainStream*, size_t, size_t);
double log_forward(const ChainLogs&, double*);
void log_backward(const ChainLogs&, double*, double, double*, double*);

constexpr double minus_infinity = -__builtin_inf();

static inline Doubles larger_of(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
  return _mm256_max_pd(a, b);
#elif defined(__SSE2__)
  return _mm_max_pd(a, b);
#else
  return choose(a > b, a, b);
#endif
}

template <size_t distance>
static inline Doubles exchange(Doubles v) {
  Mask from;
  for (size_t lane = 0; lane < lanes; lane++) from[lane] = static_cast<int64_t>(lane ^ distance);
  return __builtin_shuffle(v, from);
}

// The sum, or the largest, of all lanes in every lane.
static inline Doubles spread_sum(Doubles v) {
#if defined(__AVX512F__)
  v += exchange<4>(v);
#endif
#if defined(__AVX2__)
  v += exchange<2>(v);
#endif
  return v + exchange<1>(v);
}
static inline Doubles spread_largest(Doubles v) {
#if defined(__AVX512F__)
  v = larger_of(v, exchange<4>(v));
#endif
#if defined(__AVX2__)
  v = larger_of(v, exchange<2>(v));
#endif
  return larger_of(v, exchange<1>(v));
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

// Remembers that a lane was marked.
static inline void mark(uint64_t* watched, Mask where) {
  typedef int64_t UnalignedMask __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
  *reinterpret_cast<UnalignedMask*>(watched) |= where;
}

// The first n lanes.
static inline Mask first_lanes(size_t n) {
  Mask mask;
  for (size_t lane = 0; lane < lanes; lane++) mask[lane] = lane < n ? -1 : 0;
  return mask;
}
// Reads and writes these lanes only: what lies beyond may be another's, or nobody's.
static inline Doubles load_part(const double* p, Mask part) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_pd(_mm512_movepi64_mask((__m512i)part), p);
#elif defined(__AVX2__)
  return _mm256_maskload_pd(p, (__m256i)part);
#else
  return Doubles{part[0] ? p[0] : 0.0, part[1] ? p[1] : 0.0};
#endif
}
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

constexpr size_t most_vectors = 8;  // of sums kept in registers

// Calls f with the number of vectors of a row as a compile-time constant, 0 if there are more than most_vectors.
template <size_t n>
struct Vectors {
  static constexpr size_t value = n;
};
template <class F>
static inline void with_vectors(size_t n_vectors, F f) {
  switch (n_vectors) {
    case 1: return f(Vectors<1>());
    case 2: return f(Vectors<2>());
    case 3: return f(Vectors<3>());
    case 4: return f(Vectors<4>());
    case 5: return f(Vectors<5>());
    case 6: return f(Vectors<6>());
    case 7: return f(Vectors<7>());
    case 8: return f(Vectors<8>());
    default: return f(Vectors<0>());
  }
}

// Calls f(count, first vector) for every block of vectors of a row: one block if their number is a constant.
template <size_t n_vectors, class F>
static inline void for_blocks(size_t pitch, F f) {
  if constexpr (n_vectors != 0) {
    f(Vectors<n_vectors>(), 0);
  } else {
    const size_t n = pitch / lanes;
    size_t v = 0;
    for (; v + most_vectors <= n; v += most_vectors) f(Vectors<most_vectors>(), v);
    if (v < n) with_vectors(n - v, [&](auto count) {
      if constexpr (decltype(count)::value != 0) f(count, v);
    });
  }
}

// sum[v] = Σ x[i] · matrix[i][v]
template <size_t n>
static inline void multiply_rows(const double* x, const double* matrix, size_t n_rows, size_t pitch, Doubles* sum) {
  if constexpr (n <= 2) {  // two sums each, so that an addition waits for every other only
    Doubles other[n] = {};
#pragma GCC unroll 2
    for (size_t v = 0; v < n; v++) sum[v] = Doubles{};
    size_t i = 0;
    for (; i + 2 <= n_rows; i += 2, matrix += 2 * pitch) {
      const Doubles a = repeat(x[i]), b = repeat(x[i + 1]);
#pragma GCC unroll 2
      for (size_t v = 0; v < n; v++) {
        sum[v] = multiply_add(a, load(matrix + v * lanes), sum[v]);
        other[v] = multiply_add(b, load(matrix + pitch + v * lanes), other[v]);
      }
    }
    if (i < n_rows) {
      const Doubles a = repeat(x[i]);
#pragma GCC unroll 2
      for (size_t v = 0; v < n; v++) sum[v] = multiply_add(a, load(matrix + v * lanes), sum[v]);
    }
#pragma GCC unroll 2
    for (size_t v = 0; v < n; v++) sum[v] += other[v];
  } else {
#pragma GCC unroll 8
    for (size_t v = 0; v < n; v++) sum[v] = Doubles{};
    for (size_t i = 0; i < n_rows; i++, matrix += pitch) {
      const Doubles a = repeat(x[i]);
#pragma GCC unroll 8
      for (size_t v = 0; v < n; v++) sum[v] = multiply_add(a, load(matrix + v * lanes), sum[v]);
    }
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
