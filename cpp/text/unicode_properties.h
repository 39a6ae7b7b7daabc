// Properties of Unicode code points: the table of tallybayes/kernels/text/unicode_properties.py, shared with the
// reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

// Role of a code point in tokenization: the lowest three bits of its properties.
enum WordClass : uint8_t { separator, letter, digit, mark, lone, picture, joiner, ignored };
constexpr uint8_t class_bits = 7, word_bit = 8, space_bit = 16, ignorable_bit = 32, cased_bit = 64;

struct Unicode {
  std::vector<uint8_t> block_of, blocks;  // index of a record: blocks[block_of[code >> 8]][code & 255]
  std::vector<int32_t> properties, lower;  // of records
  std::vector<uint64_t> pairs;             // a letter and its mark, sorted
  std::vector<uint32_t> wholes;  // their compositions

  size_t record(uint32_t code) const { return blocks[size_t{block_of[code >> 8]} << 8 | (code & 255)]; }
  // The composition of two characters, or 0.
  uint32_t composed(uint32_t first, uint32_t second) const;
};

constexpr uint32_t no_character = 0xFFFD;  // replacement of an invalid byte

// The character at `at`, which is advanced.
inline uint32_t decode(const uint8_t* text, size_t n, size_t& at) {
  const uint32_t first = text[at++];
  if (first < 0x80) return first;
  const auto next = [&](size_t k) -> uint32_t { return at + k < n ? text[at + k] : 0; };
  const auto continues = [](uint32_t byte) { return (byte & 0xC0) == 0x80; };
  const uint32_t second = next(0);
  if (first < 0xC2 || first > 0xF4 || !continues(second)) return no_character;
  if (first < 0xE0) {
    at += 1;
    return (first & 31) << 6 | (second & 63);
  }
  const uint32_t third = next(1);
  if (!continues(third)) return no_character;
  if (first < 0xF0) {
    const uint32_t code = (first & 15) << 12 | (second & 63) << 6 | (third & 63);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return no_character;  // overlong, or a surrogate
    at += 2;
    return code;
  }
  const uint32_t fourth = next(2);
  const uint32_t code = (first & 7) << 18 | (second & 63) << 12 | (third & 63) << 6 | (fourth & 63);
  if (!continues(fourth) || code < 0x10000 || code > 0x10FFFF) return no_character;
  at += 3;
  return code;
}

inline uint8_t* encode(uint32_t code, uint8_t* to) {
  const auto part = [&](unsigned shift) { return static_cast<uint8_t>(0x80 | (code >> shift & 63)); };
  if (code < 0x80) {
    *to++ = static_cast<uint8_t>(code);
  } else if (code < 0x800) {
    *to++ = static_cast<uint8_t>(0xC0 | code >> 6);
    *to++ = part(0);
  } else if (code < 0x10000) {
    *to++ = static_cast<uint8_t>(0xE0 | code >> 12);
    *to++ = part(6);
    *to++ = part(0);
  } else {
    *to++ = static_cast<uint8_t>(0xF0 | code >> 18);
    *to++ = part(12);
    *to++ = part(6);
    *to++ = part(0);
  }
  return to;
}

}  // namespace tallybayes
