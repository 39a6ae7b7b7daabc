// Copies of a block of rows, small enough to stay in cache, in the layout and type that the inner loops require.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

template <class T>
struct Tag {
  using type = T;
};

template <class T>
inline T value_at(Bytes p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

// Calls `f` with the tag of the C++ type of `type`.
template <class F>
inline void with_type(Type type, F f) {
  switch (type) {
    case Type::boolean:
    case Type::uint8: return f(Tag<uint8_t>());
    case Type::int8: return f(Tag<int8_t>());
    case Type::int16: return f(Tag<int16_t>());
    case Type::uint16: return f(Tag<uint16_t>());
    case Type::int32: return f(Tag<int32_t>());
    case Type::uint32: return f(Tag<uint32_t>());
    case Type::int64: return f(Tag<int64_t>());
    case Type::uint64: return f(Tag<uint64_t>());
    case Type::float32: return f(Tag<float>());
    case Type::float64: return f(Tag<double>());
  }
}

// Signed and unsigned codes have the same bits, so four widths are sufficient.
template <class F>
inline void with_code_type(Type type, F f) {
  switch (size_of(type)) {
    case 1: return f(Tag<uint8_t>());
    case 2: return f(Tag<uint16_t>());
    case 4: return f(Tag<uint32_t>());
    default: return f(Tag<uint64_t>());
  }
}

// Eight columns at a time: short runs of writes, and few enough read streams for the prefetcher.
constexpr size_t gathered = 8;

template <class Source, class Target>
inline void gather_columns(const Column* columns, size_t n_columns, size_t first, size_t n, Target* out, size_t pitch) {
  Bytes at[gathered];
  for (size_t k = 0; k < n_columns; k++) at[k] = columns[k].at(first);
  if (n_columns == gathered) {
    for (size_t i = 0; i < n; i++) {
      for (size_t k = 0; k < gathered; k++) {
        out[i * pitch + k] = static_cast<Target>(value_at<Source>(at[k]));
        at[k] += columns[k].stride;
      }
    }
    return;
  }
  for (size_t k = 0; k < n_columns; k++) {
    for (size_t i = 0; i < n; i++, at[k] += columns[k].stride) {
      out[i * pitch + k] = static_cast<Target>(value_at<Source>(at[k]));
    }
  }
}

// Columns of any layout, in chunks of neighbors with the same type.
template <class GatherChunk>
inline void each_chunk(const Table& table, GatherChunk gather) {
  for (size_t j = 0; j < table.n_columns;) {
    Column chunk[gathered];
    size_t k = 0;
    for (; k < gathered && j + k < table.n_columns; k++) {
      chunk[k] = table.column(j + k);
      if (chunk[k].type != chunk[0].type) break;
    }
    gather(chunk, k, j);
    j += k;
  }
}

// 255 remains the missing code; codes that do not fit into a byte become 254, which is never valid here.
template <class Source>
inline uint8_t narrow(Source code) {
  constexpr Source missing = static_cast<Source>(~Source{0});
  const Source small = code < 254 ? code : 254;
  return static_cast<uint8_t>(static_cast<uint8_t>(small) | -static_cast<uint8_t>(code == missing));
}
template <>
inline uint8_t narrow(uint8_t code) { return code; }

template <class Source>
inline void narrow_run(Bytes from, size_t n, uint8_t* out) {
  size_t i = 0;
#if defined(__AVX512F__)
  if (sizeof(Source) == 8) {
    const __m512i missing = _mm512_set1_epi64(-1), most = _mm512_set1_epi64(254), marker = _mm512_set1_epi64(255);
    for (; n >= 8 && i < n; i += 8) {
      i = smaller(i, n - 8);  // the last eight overlap those before
      const __m512i codes = _mm512_loadu_si512(from + i * 8);
      const __mmask8 absent = _mm512_cmpeq_epi64_mask(codes, missing);
      const __m512i small = _mm512_mask_mov_epi64(_mm512_min_epu64(codes, most), absent, marker);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), _mm512_cvtepi64_epi8(small));
    }
  }
#endif
  for (; i < n; i++) out[i] = narrow(value_at<Source>(from + i * sizeof(Source)));
}

#if defined(__AVX2__)
// The next `lanes` bytes as numbers. (The compiler optimizes a plain loop for runs of 64, but most rows are shorter.)
template <class Source>
inline Doubles widen(Bytes from) {
  int64_t bytes = 0;
  __builtin_memcpy(&bytes, from, lanes);
  const __m128i values = _mm_cvtsi64_si128(bytes);
#if defined(__AVX512F__)
  return _mm512_cvtepi32_pd(Source(-1) < Source(0) ? _mm256_cvtepi8_epi32(values) : _mm256_cvtepu8_epi32(values));
#else
  return _mm256_cvtepi32_pd(Source(-1) < Source(0) ? _mm_cvtepi8_epi32(values) : _mm_cvtepu8_epi32(values));
#endif
}
#endif

template <class Source>
inline void widen_run(Bytes from, size_t n, double* out) {
  size_t j = 0;
#if defined(__AVX2__)
  if (sizeof(Source) == 1 && n >= lanes) {
    for (; j < n; j += lanes) {
      j = smaller(j, n - lanes);  // the last ones overlap those before
      store(out + j, widen<Source>(from + j));
    }
  }
#endif
  for (; j < n; j++) out[j] = static_cast<double>(value_at<Source>(from + j * sizeof(Source)));
}

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint16_t Shorts8 __attribute__((vector_size(16)));
typedef uint32_t Words4 __attribute__((vector_size(16)));
typedef uint64_t Longs2 __attribute__((vector_size(16)));

inline Bytes16 load16(const uint8_t* p) {
  Bytes16 v;
  __builtin_memcpy(&v, p, 16);
  return v;
}

// out[column · pitch + row] = rows[row][column] for a square of 16 by 16 bytes: four rounds of interleaving, each
// doubling the interleaved width.
inline void transpose16(const uint8_t* rows, size_t row_pitch, uint8_t* out, size_t pitch) {
  Bytes16 a[16], b[16];
  for (int i = 0; i < 16; i++) a[i] = load16(rows + i * row_pitch);
  for (int i = 0; i < 8; i++) {
    const Bytes16 x = a[2 * i], y = a[2 * i + 1];
    b[i] = shuffle<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(x, y);
    b[8 + i] = shuffle<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(x, y);
  }
  // b[h·8 + i]: columns 8h.., rows 2i and 2i + 1
  for (int h = 0; h < 2; h++) {
    for (int i = 0; i < 4; i++) {
      const Shorts8 x = (Shorts8)b[h * 8 + 2 * i], y = (Shorts8)b[h * 8 + 2 * i + 1];
      a[(2 * h) * 4 + i] = (Bytes16)shuffle<0, 8, 1, 9, 2, 10, 3, 11>(x, y);
      a[(2 * h + 1) * 4 + i] = (Bytes16)shuffle<4, 12, 5, 13, 6, 14, 7, 15>(x, y);
    }
  }
  // a[q·4 + i]: columns 4q.., rows 4i..
  for (int q = 0; q < 4; q++) {
    for (int i = 0; i < 2; i++) {
      const Words4 x = (Words4)a[q * 4 + 2 * i], y = (Words4)a[q * 4 + 2 * i + 1];
      b[(2 * q) * 2 + i] = (Bytes16)shuffle<0, 4, 1, 5>(x, y);
      b[(2 * q + 1) * 2 + i] = (Bytes16)shuffle<2, 6, 3, 7>(x, y);
    }
  }
  // b[p·2 + i]: columns 2p.., rows 8i..
  for (int p = 0; p < 8; p++) {
    const Longs2 x = (Longs2)b[p * 2], y = (Longs2)b[p * 2 + 1];
    const Longs2 even = shuffle<0, 2>(x, y), odd = shuffle<1, 3>(x, y);
    __builtin_memcpy(out + (2 * p) * pitch, &even, 16);
    __builtin_memcpy(out + (2 * p + 1) * pitch, &odd, 16);
  }
}

// Row-major codes to columns of bytes: a batch of rows is narrowed, then transposed in squares of sixteen.
// (Transposing rows immediately after writing them would stall.) The last square overlaps to end with the last column;
// remaining cells are copied one by one.
template <class Source>
void narrow_rows(const Table& table, size_t first, size_t n, uint8_t* out, size_t pitch) {
  constexpr size_t side = 16, most_columns = 512, capacity = side * most_columns;
  uint8_t narrowed[capacity];
  for (size_t j0 = 0; j0 < table.n_columns; j0 += most_columns) {
    const size_t n_columns = smaller(most_columns, table.n_columns - j0);
    const size_t batch = capacity / n_columns / side * side;
    const bool gapless =
        n_columns == table.n_columns && table.row_stride == static_cast<ptrdiff_t>(n_columns * sizeof(Source));
    for (size_t i0 = 0; i0 < n; i0 += batch) {
      const size_t n_rows = smaller(batch, n - i0);
      Bytes source = table.row(first + i0) + j0 * sizeof(Source);
      const uint8_t* rows = narrowed;
      size_t distance = n_columns;
      if (sizeof(Source) == 1 && table.row_stride > 0) {
        rows = source;
        distance = static_cast<size_t>(table.row_stride);
      } else if (gapless) {
        narrow_run<Source>(source, n_rows * n_columns, narrowed);
      } else {
        for (size_t r = 0; r < n_rows; r++) {
          Bytes row = source + static_cast<ptrdiff_t>(r) * table.row_stride;
          narrow_run<Source>(row, n_columns, narrowed + r * n_columns);
        }
      }
      const size_t squares = n_columns >= side ? n_rows / side * side : 0;
      for (size_t r = 0; r < squares; r += side) {
        for (size_t j = 0; j < n_columns; j += side) {
          const size_t start = smaller(j, n_columns - side);
          transpose16(rows + r * distance + start, distance, out + (j0 + start) * pitch + i0 + r, pitch);
        }
      }
      for (size_t j = 0; j < n_columns; j++) {
        for (size_t r = squares; r < n_rows; r++) out[(j0 + j) * pitch + i0 + r] = rows[r * distance + j];
      }
    }
  }
}

}  // namespace

void load_doubles(const Table& table, size_t first, size_t n, double* out, size_t pitch) {
  if (table.row_major()) {
    with_type(table.type, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      for (size_t i = 0; i < n; i++) {
        Bytes row = table.row(first + i);
        widen_run<Source>(row, table.n_columns, out + i * pitch);
      }
    });
    return;
  }
  each_chunk(table, [&](const Column* chunk, size_t n_columns, size_t j) {
    with_type(chunk[0].type, [&](auto tag) {
      gather_columns<typename decltype(tag)::type>(chunk, n_columns, first, n, out + j, pitch);
    });
  });
}

void load_bytes(const Table& table, size_t first, size_t n, uint8_t* out, size_t pitch) {
  if (table.row_major()) {
    for (size_t i = 0; i < n; i++) __builtin_memcpy(out + i * pitch, table.row(first + i), table.n_columns);
    return;
  }
  constexpr size_t side = 16;
  if (!table.separate && table.row_stride == 1 && table.column_stride > 0 && table.n_columns >= side && n >= side) {
    // Columns of bytes: transposed in squares, the last ones overlapping to end with the last row and column.
    for (size_t i = 0; i < n; i += side) {
      const size_t row = smaller(i, n - side);
      for (size_t j = 0; j < table.n_columns; j += side) {
        const size_t column = smaller(j, table.n_columns - side);
        transpose16(table.column(column).at(first + row), static_cast<size_t>(table.column_stride),
                    out + row * pitch + column, pitch);
      }
    }
    return;
  }
  each_chunk(table, [&](const Column* chunk, size_t n_columns, size_t j) {
    gather_columns<uint8_t>(chunk, n_columns, first, n, out + j, pitch);
  });
}

void load_narrow_codes(const Table& table, size_t first, size_t n, uint8_t* out, size_t pitch) {
  if (table.row_major() && table.n_columns > 1) {
    with_code_type(table.type, [&](auto tag) {
      narrow_rows<typename decltype(tag)::type>(table, first, n, out, pitch);
    });
    return;
  }
  for (size_t j = 0; j < table.n_columns; j++) {
    const Column column = table.column(j);
    uint8_t* target = out + j * pitch;
    with_code_type(column.type, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      if (column.contiguous()) return narrow_run<Source>(column.at(first), n, target);
      Bytes at = column.at(first);
      for (size_t i = 0; i < n; i++, at += column.stride) target[i] = narrow(value_at<Source>(at));
    });
  }
}

bool load_codes(const Column& column, size_t first, size_t n, uint32_t size, const uint8_t* present, uint32_t* out) {
  bool good = true;
  with_code_type(column.type, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    constexpr Source missing = static_cast<Source>(~Source{0});
    // The limit may be one more than the type can represent; then every code is valid.
    const uint64_t limit = code_limit(column.type, size);
    const bool unlimited = limit > missing;
    const Source bound = static_cast<Source>(limit);
    uint32_t bad = 0;
    auto clean = [&](Source code, size_t i) {
      const bool valid = unlimited | (code < bound);
      bad |= static_cast<uint32_t>(!valid & (code != missing)) & present[i];
      return valid ? static_cast<uint32_t>(code) : size;
    };
    Bytes at = column.at(first);
    if (column.contiguous()) {
      for (size_t i = 0; i < n; i++) out[i] = clean(value_at<Source>(at + i * sizeof(Source)), i);
    } else {
      for (size_t i = 0; i < n; i++, at += column.stride) out[i] = clean(value_at<Source>(at), i);
    }
    good = bad == 0;
  });
  return good;
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
