// Blocks of dense cells transposed to columns of doubles, so that a vector holds one column of several rows.
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

template <class Source>
inline Doubles load_as_doubles(Bytes p) {
  alignas(64) double values[lanes];
  for (size_t lane = 0; lane < lanes; lane++) {
    values[lane] = static_cast<double>(read_as<Source>(p + lane * sizeof(Source)));
  }
  return load(values);
}

template <>
inline Doubles load_as_doubles<double>(Bytes p) {
  Doubles values;
  __builtin_memcpy(&values, p, sizeof(values));
  return values;
}

inline size_t padded(size_t n) { return (n + row_pad - 1) / row_pad * row_pad; }

// Squares of cells. The last square of a row of squares overlaps to end with the last column.
template <class Source>
void turn_rows(const Table& table, size_t first, size_t n, size_t column, size_t n_columns, double* out, size_t pitch) {
  for (size_t i = 0; i < padded(n); i += lanes) {
    const size_t n_rows = i < n ? smaller(lanes, n - i) : 0;
    if (n_columns < lanes) {
      for (size_t j = 0; j < n_columns; j++) {
        for (size_t r = 0; r < lanes; r++) {
          Bytes cell = table.row(first + (r < n_rows ? i + r : 0)) + (column + j) * sizeof(Source);
          out[j * pitch + i + r] = r < n_rows ? static_cast<double>(read_as<Source>(cell)) : 0.0;
        }
      }
      continue;
    }
    for (size_t j = 0; j < n_columns; j += lanes) {
      const size_t start = smaller(j, n_columns - lanes);
      Doubles square[lanes];
      if (n_rows == lanes) {
        for (size_t r = 0; r < lanes; r++) {
          square[r] = load_as_doubles<Source>(table.row(first + i + r) + (column + start) * sizeof(Source));
        }
      } else {
        for (size_t r = 0; r < lanes; r++) {
          square[r] = Doubles{};
          Bytes row = table.row(first + (r < n_rows ? i + r : 0));
          if (r < n_rows) square[r] = load_as_doubles<Source>(row + (column + start) * sizeof(Source));
        }
      }
      turn_square(square);
      for (size_t r = 0; r < lanes; r++) store(out + (start + r) * pitch + i, square[r]);
    }
  }
}

// Bytes are transposed as bytes, sixteen times as many at once, before they are converted to doubles.
template <class Source>
void turn_bytes(const Table& table, size_t first, size_t n, size_t column, size_t n_columns, double* out,
                size_t pitch) {
  uint8_t bytes[block_columns * most_chunk_rows];
  Table part = table;
  part.data += column;
  part.n_columns = n_columns;
  load_narrow_codes(part, first, n, bytes, most_chunk_rows);
  for (size_t j = 0; j < n_columns; j++) {
    uint8_t* from = bytes + j * most_chunk_rows;
    for (size_t i = n; i < padded(n); i++) from[i] = 0;
    double* target = out + j * pitch;
    for (size_t i = 0; i < padded(n); i += row_pad) {
      for (size_t r = 0; r < row_pad; r++) target[i + r] = static_cast<double>(static_cast<Source>(from[i + r]));
    }
  }
}

}  // namespace

void load_columns(const Table& table, size_t first, size_t n, size_t column, size_t n_columns, double* out,
                  size_t pitch) {
  if (table.row_major() && n_columns > 1) {
    if (table.type == Type::int8) return turn_bytes<int8_t>(table, first, n, column, n_columns, out, pitch);
    if (size_of(table.type) == 1) return turn_bytes<uint8_t>(table, first, n, column, n_columns, out, pitch);
    with_cell_type(table.type, [&](auto tag) {
      turn_rows<typename decltype(tag)::type>(table, first, n, column, n_columns, out, pitch);
    });
    return;
  }
  for (size_t j = 0; j < n_columns; j++) {
    const Column source = table.column(column + j);
    double* target = out + j * pitch;
    with_cell_type(source.type, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      Bytes at = source.at(first);
      if (source.contiguous()) {
        for (size_t i = 0; i < n; i++) target[i] = static_cast<double>(read_as<Source>(at + i * sizeof(Source)));
      } else {
        for (size_t i = 0; i < n; i++, at += source.stride) target[i] = static_cast<double>(read_as<Source>(at));
      }
    });
    for (size_t i = n; i < padded(n); i++) target[i] = 0.0;
  }
}

namespace {

template <Check check>
Outcome examine_block(const double* cells, size_t pitch, size_t n_rows, size_t n_columns) {
  Mask good = ~Mask{};
  for (size_t j = 0; j < n_columns; j++) {
    for (size_t i = 0; i < n_rows; i += lanes) good &= accepted<check>(load(cells + j * pitch + i));
  }
  if (all(good)) return Outcome::clean;
  good = ~Mask{};
  for (size_t j = 0; j < n_columns; j++) {
    for (size_t i = 0; i < n_rows; i += lanes) {
      const Doubles x = load(cells + j * pitch + i);
      good &= accepted<check>(x) | (x != x);
    }
  }
  return all(good) ? Outcome::missing : Outcome::bad;
}

}  // namespace

Outcome examine(const double* cells, size_t pitch, size_t n_rows, size_t n_columns, Check check) {
  switch (check) {
    case Check::binary: return examine_block<Check::binary>(cells, pitch, n_rows, n_columns);
    case Check::count: return examine_block<Check::count>(cells, pitch, n_rows, n_columns);
    case Check::nonnegative: return examine_block<Check::nonnegative>(cells, pitch, n_rows, n_columns);
    case Check::finite: break;
  }
  return examine_block<Check::finite>(cells, pitch, n_rows, n_columns);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
