// Views of the caller's arrays: pointer, strides in bytes and element type. Views own no memory.
#pragma once

#include <cstddef>
#include <cstdint>

// Always inlined: the functions are compiled into every tier, and a shared copy could contain instructions that the
// processor lacks.
#define TALLYBAYES_INLINE inline __attribute__((always_inline))

namespace tallybayes {

// Number of set bits. Without the instruction, the compiler would call a library function for every word.
TALLYBAYES_INLINE uint64_t count_ones(uint64_t word) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
#else
  return static_cast<uint64_t>(__builtin_popcountll(word));
#endif
}

using Bytes = const unsigned char*;

enum class Type : uint8_t { boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };

TALLYBAYES_INLINE size_t size_of(Type type) {
  constexpr uint8_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return sizes[static_cast<size_t>(type)];
}
TALLYBAYES_INLINE bool is_signed(Type type) {
  return type == Type::int8 || type == Type::int16 || type == Type::int32 || type == Type::int64;
}

struct Column {
  Bytes data = nullptr;
  ptrdiff_t stride = 0;
  Type type = Type::float64;

  TALLYBAYES_INLINE Bytes at(size_t row) const { return data + static_cast<ptrdiff_t>(row) * stride; }
  TALLYBAYES_INLINE bool contiguous() const { return stride == static_cast<ptrdiff_t>(size_of(type)); }
};

// A matrix, or separate columns (`separate` is set, `columns` points to n_columns of them).
struct Table {
  size_t n_rows = 0;
  size_t n_columns = 0;
  bool separate = false;
  const Column* columns = nullptr;
  Bytes data = nullptr;
  ptrdiff_t row_stride = 0;
  ptrdiff_t column_stride = 0;
  Type type = Type::float64;

  TALLYBAYES_INLINE Column column(size_t j) const {
    if (separate) return columns[j];
    return {data + static_cast<ptrdiff_t>(j) * column_stride, row_stride, type};
  }
  TALLYBAYES_INLINE Bytes row(size_t i) const { return data + static_cast<ptrdiff_t>(i) * row_stride; }
  // Whether the rows can be read in place as arrays with this number of bytes per element.
  TALLYBAYES_INLINE bool aligned() const {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(row_stride);
    return bits % size_of(type) == 0;
  }
  TALLYBAYES_INLINE bool row_major() const {
    return !separate && column_stride == static_cast<ptrdiff_t>(size_of(type));
  }
};

// Codes are read as unsigned numbers: a valid code is below `limit`, the missing code has all bits set, other codes
// are errors. `limit` is the number of levels, or less if a signed type cannot represent that many.
TALLYBAYES_INLINE uint64_t code_limit(Type type, uint64_t size) {
  const unsigned bits = 8 * static_cast<unsigned>(size_of(type)) - (is_signed(type) ? 1 : 0);
  return bits >= 63 || size < (uint64_t{1} << bits) ? size : uint64_t{1} << bits;
}
TALLYBAYES_INLINE uint64_t missing_code(Type type) { return ~uint64_t{0} >> (64 - 8 * size_of(type)); }

struct Groups {
  Column codes;  // no data: every row is in group 0
  size_t n_groups = 1;
  TALLYBAYES_INLINE bool given() const { return codes.data != nullptr; }
};

// No data: every row has weight 1. `soft`: one weight per row and group.
struct Weights {
  Bytes data = nullptr;
  ptrdiff_t row_stride = 0;
  ptrdiff_t group_stride = 0;
  bool soft = false;

  TALLYBAYES_INLINE bool given() const { return data != nullptr; }
  TALLYBAYES_INLINE double at(size_t row, size_t group) const {
    double weight;
    __builtin_memcpy(&weight, data + static_cast<ptrdiff_t>(row) * row_stride +
                                  static_cast<ptrdiff_t>(group) * group_stride, sizeof(weight));
    return weight;
  }
};

enum class Kind : uint8_t { binary, poisson, multinomial };

// Result of scanning the cells of a kernel. `missing`: there are missing cells, which were skipped. `bad`: there is an
// invalid cell; the sums are then meaningless, and find_invalid_cell.cpp finds the cell.
enum class Outcome : uint8_t { clean, missing, bad };

}  // namespace tallybayes
