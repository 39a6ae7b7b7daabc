// Sums of the table rows selected by codes. Here a vector holds several classes of one row.
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Signed and unsigned codes have the same bits, so four widths are sufficient.
template <class F>
inline void with_code_width(Type type, F f) {
  switch (size_of(type)) {
    case 1: return f(ScoreTag<uint8_t>());
    case 2: return f(ScoreTag<uint16_t>());
    case 4: return f(ScoreTag<uint32_t>());
    default: return f(ScoreTag<uint64_t>());
  }
}

// Limits fit into 31 bits, so only the widest codes need a wider comparison.
template <class Source>
struct Wide {
  using type = uint32_t;
};
template <>
struct Wide<uint64_t> {
  using type = uint64_t;
};

template <class Source>
inline uint32_t entry_of(Source code, uint32_t limit, uint32_t offset, uint32_t pitch, uint32_t& bad) {
  using Number = typename Wide<Source>::type;
  constexpr Source missing = static_cast<Source>(~Source{0});
  const bool valid = static_cast<Number>(code) < limit;
  bad |= static_cast<uint32_t>(!valid & (code != missing));
  return valid ? static_cast<uint32_t>(code) * pitch + offset : 0;
}

template <class Source>
inline uint32_t read_run(Bytes from, size_t n, const CodeColumns& columns, uint32_t* out) {
  uint32_t bad = 0;
  const uint32_t *limits = columns.limits, *offsets = columns.offsets;
  const uint32_t pitch = columns.pitch;
  for (size_t k = 0; k < n; k++) {
    out[k] = entry_of(read_as<Source>(from + k * sizeof(Source)), limits[k], offsets[k], pitch, bad);
  }
  return bad;
}

}  // namespace

bool load_entries(const Table& table, size_t first, size_t n, const CodeColumns& columns, uint32_t* out) {
  const size_t n_columns = table.n_columns;
  uint32_t bad = 0;
  if (table.row_major()) {
    with_code_width(table.type, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      const bool gapless = table.row_stride == static_cast<ptrdiff_t>(n_columns * sizeof(Source));
      const size_t rows_at_once = gapless ? columns.n_repeated : 1;
      for (size_t i = 0; i < n; i += rows_at_once) {
        const size_t n_rows = smaller(rows_at_once, n - i);
        bad |= read_run<Source>(table.row(first + i), n_rows * n_columns, columns, out + i * n_columns);
      }
    });
  } else {
    for (size_t j = 0; j < n_columns; j++) {
      const Column column = table.column(j);
      with_code_width(column.type, [&](auto tag) {
        using Source = typename decltype(tag)::type;
        Bytes at = column.at(first);
        const uint32_t limit = columns.limits[j], offset = columns.offsets[j], pitch = columns.pitch;
        for (size_t i = 0; i < n; i++, at += column.stride) {
          out[i * n_columns + j] = entry_of(read_as<Source>(at), limit, offset, pitch, bad);
        }
      });
    }
  }
  return !(columns.strict && bad);
}

namespace {

constexpr size_t parts = panel_classes / lanes;  // vectors in a panel

template <size_t n_panels, size_t n_rows>
inline void sum_panels(const uint32_t* entries, size_t n_columns, const double* table, size_t pitch, double* out) {
  constexpr size_t width = n_panels * parts;
  Doubles sum[n_rows][width] = {};
  for (size_t j = 0; j < n_columns; j++) {
#pragma GCC unroll 8
    for (size_t r = 0; r < n_rows; r++) {
      const double* row = table + entries[r * n_columns + j];
#pragma GCC unroll 16
      for (size_t v = 0; v < width; v++) sum[r][v] += load(row + v * lanes);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 16
    for (size_t v = 0; v < width; v++) store(out + r * pitch + v * lanes, sum[r][v]);
  }
}

template <size_t n_panels>
inline void sum_rows(const uint32_t* entries, size_t n_rows, size_t n_columns, const double* table, size_t pitch,
                     double* out) {
  constexpr size_t at_once = n_panels * parts >= 8 ? 1 : 8 / (n_panels * parts);
  size_t i = 0;
  for (; i + at_once <= n_rows; i += at_once) {
    sum_panels<n_panels, at_once>(entries + i * n_columns, n_columns, table, pitch, out + i * pitch);
  }
  for (; i < n_rows; i++) sum_panels<n_panels, 1>(entries + i * n_columns, n_columns, table, pitch, out + i * pitch);
}

}  // namespace

void sum_entries(const uint32_t* entries, size_t n_rows, size_t n_columns, const double* table, size_t pitch,
                 double* out) {
  for (size_t start = 0; start < pitch;) {
    switch ((pitch - start) / panel_classes) {
      case 1:
        sum_rows<1>(entries, n_rows, n_columns, table + start, pitch, out + start);
        start += panel_classes;
        break;
      case 2:
        sum_rows<2>(entries, n_rows, n_columns, table + start, pitch, out + start);
        start += 2 * panel_classes;
        break;
      default:
        sum_rows<3>(entries, n_rows, n_columns, table + start, pitch, out + start);
        start += 3 * panel_classes;
    }
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
