// The pages of a column in a Parquet file: numbers and labels that are there in every row, by the codes of a dictionary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

enum class Codec { none, snappy };

// The labels of a dictionary, one after the other.
struct Labels {
  std::vector<int32_t> offsets;
  std::vector<uint8_t> bytes;
};

// Writes what the pages of a column hold. False where they are none of those that are understood, or broken: somebody
// else has to read them then. `n_bytes` are those of a number in the file, 4 or 8; whether the column could lack cells
// in some rows is said by `optional`: it lacks none, or is not understood.
template <class Number>
bool read_numbers(const uint8_t* pages, size_t size, Codec codec, bool optional, size_t n_bytes, Number* out, size_t n);
bool read_labels(const uint8_t* pages, size_t size, Codec codec, bool optional, int32_t* out, size_t n, Labels& labels);

// False where the bytes are not `size` others, compressed.
bool unsnap(const uint8_t* at, const uint8_t* end, uint8_t* out, size_t size);

}  // namespace tallybayes
