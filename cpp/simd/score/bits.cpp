// Linear sums over cells that are 0 or 1 and stored as bytes: four columns select one of 16 rows of a table of their
// sums.
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t word = 64;  // cells that become 64 bits at once
constexpr size_t tile_bytes = 16384;  // of the table, used for all rows of a chunk while it is in the first-level cache
constexpr size_t parts = panel_classes / lanes;
constexpr size_t entries_for_byte = 32;  // 16 for each half

inline uint64_t bits_of(const uint8_t* cells, uint64_t& bad) {
#if defined(__AVX512BW__)
  const __m512i v = _mm512_loadu_si512(cells);
  bad |= _mm512_cmpgt_epu8_mask(v, _mm512_set1_epi8(1));
  return _mm512_test_epi8_mask(v, v);
#elif defined(__AVX2__)
  uint64_t bits = 0;
  for (size_t half = 0; half < 2; half++) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cells + 32 * half));
    bad |= static_cast<uint64_t>(!_mm256_testz_si256(v, _mm256_set1_epi8(static_cast<char>(0xfe))));
    bits |= uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(v, 7)))} << (32 * half);
  }
  return bits;
#else
  // Multiplying eight bytes 0 or 1 by this number collects their bits, in order and without carries, in the highest
  // byte.
  constexpr uint64_t gather = 0x0102040810204080;
  uint64_t bits = 0;
  for (size_t k = 0; k < 8; k++) {
    const uint64_t eight = read_as<uint64_t>(cells + 8 * k);
    bad |= eight & 0xfefefefefefefefe;
    bits |= ((eight * gather) >> 56) << (8 * k);
  }
  return bits;
#endif
}

template <size_t n_panels, size_t n_rows>
inline void sum_tile(const uint8_t* bits, size_t bit_pitch, size_t n_bytes, const double* table, size_t pitch,
                     double* out) {
  constexpr size_t width = n_panels * parts;
  Doubles sum[n_rows][width];
#pragma GCC unroll 8
  for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 16
    for (size_t v = 0; v < width; v++) sum[r][v] = load(out + r * pitch + v * lanes);
  }
  for (size_t b = 0; b < n_bytes; b++, table += entries_for_byte * pitch) {
#pragma GCC unroll 8
    for (size_t r = 0; r < n_rows; r++) {
      const size_t byte = bits[r * bit_pitch + b];
      const double *low = table + (byte & 15) * pitch, *high = table + (16 + (byte >> 4)) * pitch;
#pragma GCC unroll 16
      for (size_t v = 0; v < width; v++) sum[r][v] += load(low + v * lanes);
#pragma GCC unroll 16
      for (size_t v = 0; v < width; v++) sum[r][v] += load(high + v * lanes);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 16
    for (size_t v = 0; v < width; v++) store(out + r * pitch + v * lanes, sum[r][v]);
  }
}

template <size_t n_panels>
inline void sum_rows(const uint8_t* bits, size_t bit_pitch, size_t n_rows, size_t n_bytes, const double* table,
                     size_t pitch, double* out) {
  constexpr size_t at_once = n_panels * parts >= 8 ? 1 : 8 / (n_panels * parts);
  size_t i = 0;
  for (; i + at_once <= n_rows; i += at_once) {
    sum_tile<n_panels, at_once>(bits + i * bit_pitch, bit_pitch, n_bytes, table, pitch, out + i * pitch);
  }
  for (; i < n_rows; i++) {
    sum_tile<n_panels, 1>(bits + i * bit_pitch, bit_pitch, n_bytes, table, pitch, out + i * pitch);
  }
}

}  // namespace

bool load_bits(const Table& table, size_t first, size_t n, uint8_t* bits, size_t bit_pitch, uint8_t* bytes) {
  const size_t n_columns = table.n_columns;
  const bool in_place = table.row_major();
  if (!in_place) load_bytes(table, first, n, bytes, n_columns);
  uint64_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t* row = in_place ? table.row(first + i) : bytes + i * n_columns;
    uint8_t* out = bits + i * bit_pitch;
    size_t j = 0;
    for (; j + word <= n_columns; j += word) {
      const uint64_t found = bits_of(row + j, bad);
      __builtin_memcpy(out + j / 8, &found, sizeof(found));
    }
    if (j < n_columns) {
      uint8_t rest[word] = {};
      __builtin_memcpy(rest, row + j, n_columns - j);
      const uint64_t found = bits_of(rest, bad);
      __builtin_memcpy(out + j / 8, &found, sizeof(found));
    }
  }
  return bad == 0;
}

void sum_bits(const uint8_t* bits, size_t bit_pitch, size_t n_rows, size_t n_bytes, const double* table, size_t pitch,
              double* out) {
  for (size_t start = 0; start < pitch;) {
    const size_t n_panels = smaller<size_t>(3, (pitch - start) / panel_classes);
    const size_t tile = larger<size_t>(1, tile_bytes / (entries_for_byte * n_panels * panel_classes * sizeof(double)));
    for (size_t b = 0; b < n_bytes; b += tile) {
      const size_t n = smaller(tile, n_bytes - b);
      const double* part = table + b * entries_for_byte * pitch + start;
      if (n_panels == 1) sum_rows<1>(bits + b, bit_pitch, n_rows, n, part, pitch, out + start);
      if (n_panels == 2) sum_rows<2>(bits + b, bit_pitch, n_rows, n, part, pitch, out + start);
      if (n_panels == 3) sum_rows<3>(bits + b, bit_pitch, n_rows, n, part, pitch, out + start);
    }
    start += n_panels * panel_classes;
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
