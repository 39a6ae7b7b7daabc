// Conversion of emissions and probabilities between the caller's arrays and the loops.
#include "simd/hmm/loops.h"
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

template <class Source>
bool load_as(const Column& column, size_t first, size_t n, uint32_t size, uint32_t* out) {
  constexpr Source missing = static_cast<Source>(~Source{0});
  const uint64_t limit = code_limit(column.type, size);
  const bool unlimited = limit > missing;  // one more than the type can represent
  const Source bound = static_cast<Source>(limit);
  uint32_t bad = 0;
  auto level = [&](Bytes at) {
    Source code;
    __builtin_memcpy(&code, at, sizeof(code));
    const bool valid = unlimited | (code < bound);
    bad |= static_cast<uint32_t>(!valid & (code != missing));
    return valid ? static_cast<uint32_t>(code) : size;
  };
  Bytes at = column.at(first);
  if (column.contiguous()) {
    for (size_t i = 0; i < n; i++) out[i] = level(at + i * sizeof(Source));
  } else {
    for (size_t i = 0; i < n; i++, at += column.stride) out[i] = level(at);
  }
  return bad == 0;
}

constexpr double log_tiny = -230.25850929940457;  // log chain_tiny

// Calls write(row, vector, x − maximum) for every vector; true if all are numbers or −inf.
template <class Write>
inline bool shift_by_maximum(const double* rows, size_t n_rows, size_t n_states, double* maxima, Write write) {
  const RowShape shape(n_states);
  const size_t last = shape.n_vectors - 1;
  const Doubles beyond = choose(shape.last, Doubles{}, repeat(minus_infinity));  // 0 in the lanes that count
  Mask bad = {};
  for (size_t i = 0; i < n_rows; i++, rows += n_states) {
    Doubles largest = load_part(rows + last * lanes, shape.last) + beyond;
    bad |= ~(largest < __builtin_inf());
    for (size_t v = 0; v < last; v++) {
      const Doubles x = load(rows + v * lanes);
      bad |= ~(x < __builtin_inf());
      largest = larger_of(largest, x);
    }
    largest = spread_largest(largest);
    largest = keep(largest, largest > minus_infinity);
    maxima[i] = largest[0];
    for (size_t v = 0; v < last; v++) write(i, v, load(rows + v * lanes) - largest);
    write(i, last, (load_part(rows + last * lanes, shape.last) + beyond) - largest);
  }
  return bits_of(bad) == 0;
}

}  // namespace

bool load_levels(const Column& column, size_t first, size_t n, uint32_t size, uint32_t* out) {
  switch (size_of(column.type)) {
    case 1: return load_as<uint8_t>(column, first, n, size, out);
    case 2: return load_as<uint16_t>(column, first, n, size, out);
    case 4: return load_as<uint32_t>(column, first, n, size, out);
    default: return load_as<uint64_t>(column, first, n, size, out);
  }
}

namespace {

// If a row is shorter than a vector, a square of rows is transposed: a vector then holds one state of several rows,
// and no lane is wasted.
template <size_t n_states>
inline void exp_square(const double* rows, double* out, double* maxima, Mask& bad, Mask& small) {
  const Mask part = first_lanes(n_states);
  Doubles square[lanes];
  for (size_t r = 0; r < lanes; r++) square[r] = load_part(rows + r * n_states, part);
  turn_square(square);
  Doubles largest = square[0];
#pragma GCC unroll 8
  for (size_t j = 0; j < n_states; j++) {
    bad |= ~(square[j] < __builtin_inf());
    largest = larger_of(largest, square[j]);
  }
  largest = keep(largest, largest > minus_infinity);
  store(maxima, largest);
#pragma GCC unroll 8
  for (size_t j = 0; j < n_states; j++) {
    const Doubles x = square[j] - largest;
    small |= (x < log_tiny) & (x > minus_infinity);
    square[j] = exp_of_negative(x);
  }
  turn_square(square);
  for (size_t r = 0; r < lanes; r++) store(out + r * lanes, square[r]);
}

}  // namespace

bool exp_rows(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima,
              bool& tiny) {
  Mask small = {}, bad = {};
  with_shape(n_states, [&](auto shape) {
    constexpr size_t n = decltype(shape)::states;
    if constexpr (n != 0 && n < lanes) {
      for (; n_rows >= lanes; n_rows -= lanes) {
        exp_square<n>(rows, out, maxima, bad, small);
        rows += lanes * n;
        out += lanes * lanes;
        maxima += lanes;
      }
    }
  });
  const bool good = shift_by_maximum(rows, n_rows, n_states, maxima, [&](size_t row, size_t v, Doubles x) {
    small |= (x < log_tiny) & (x > minus_infinity);
    store(out + row * pitch + v * lanes, exp_of_negative(x));
  });
  tiny = bits_of(small) != 0;
  return good && bits_of(bad) == 0;
}

bool shift_rows(const double* rows, size_t n_rows, size_t n_states, double* out, size_t pitch, double* maxima) {
  return shift_by_maximum(rows, n_rows, n_states, maxima, [&](size_t row, size_t v, Doubles x) {
    store(out + row * pitch + v * lanes, x);
  });
}

void share_rows(const double* rows, size_t n_rows, size_t n_states, size_t pitch, double* out) {
  const RowShape shape(n_states);
  const size_t last = shape.n_vectors - 1;
  for (size_t i = 0; i < n_rows; i++, rows += pitch, out += n_states) {
    const Doubles sum = sum_of_row(shape.n_vectors, [&](size_t v) { return load(rows + v * lanes); });
    const Doubles share = keep(1.0 / sum, sum > 0.0);
    for (size_t v = 0; v < last; v++) store(out + v * lanes, load(rows + v * lanes) * share);
    store_part(out + last * lanes, load(rows + last * lanes) * share, shape.last);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
