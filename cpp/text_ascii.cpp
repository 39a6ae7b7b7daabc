// Text of plain ASCII becomes words 64 bytes at a time: what every byte is as bits, then where words begin and end.
#include <cstring>

#include "text_tokens.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tallybayes {

namespace {

struct Masks {
  uint64_t words = 0, letters = 0, joiners = 0, others = 0;
};

#if defined(__SSE2__)
// Looks at 64 bytes and writes them, in small letters where `shift` is 32 and not 0.
inline Masks look(const uint8_t* from, uint8_t* to, uint8_t shift) {
  Masks masks;
  const auto all = [](char byte) { return _mm_set1_epi8(byte); };
  const auto between = [&](__m128i x, char below, char above) {
    return _mm_and_si128(_mm_cmpgt_epi8(x, all(below)), _mm_cmplt_epi8(x, all(above)));
  };
  const auto bits = [](__m128i x) { return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(x))); };
  for (int k = 0; k < 4; k++) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * k));
    const __m128i upper = between(x, 'A' - 1, 'Z' + 1);
    const __m128i small = _mm_add_epi8(x, _mm_and_si128(upper, all(static_cast<char>(shift))));
    const __m128i letters = _mm_or_si128(upper, between(x, 'a' - 1, 'z' + 1));
    const __m128i digits = _mm_or_si128(between(x, '0' - 1, '9' + 1), _mm_cmpeq_epi8(x, all('_')));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * k), small);
    masks.letters |= bits(letters) << 16 * k;
    masks.words |= bits(_mm_or_si128(letters, digits)) << 16 * k;
    masks.joiners |= bits(_mm_cmpeq_epi8(x, all('\''))) << 16 * k;
    masks.others |= bits(x) << 16 * k;
  }
  return masks;
}
#else
// The same, eight bytes at a time.
inline Masks look(const uint8_t* from, uint8_t* to, uint8_t shift) {
  constexpr uint64_t ones = 0x0101010101010101, tops = 0x80 * ones;
  // The top bit of every byte from 0 to 127 that is at least `low` and at most `high`.
  const auto between = [&](uint64_t x, uint64_t low, uint64_t high) {
    return (x + (0x80 - low) * ones) & ~(x + (0x7F - high) * ones) & tops;
  };
  const auto bits = [](uint64_t tops_set) { return (tops_set >> 7) * 0x0102040810204080 >> 56; };
  Masks masks;
  for (int k = 0; k < 8; k++) {
    uint64_t x = 0;
    for (int byte = 0; byte < 8; byte++) x |= uint64_t{from[8 * k + byte]} << 8 * byte;
    const uint64_t plain = x & ~tops, upper = between(plain, 'A', 'Z');
    const uint64_t letters = upper | between(plain, 'a', 'z');
    const uint64_t words = letters | between(plain, '0', '9') | between(plain, '_', '_');
    const uint64_t small = x + (upper >> 7) * shift;
    for (int byte = 0; byte < 8; byte++) to[8 * k + byte] = static_cast<uint8_t>(small >> 8 * byte);
    masks.letters |= bits(letters) << 8 * k;
    masks.words |= bits(words) << 8 * k;
    masks.joiners |= bits(between(plain, '\'', '\'')) << 8 * k;
    masks.others |= bits(x & tops) << 8 * k;
  }
  return masks;
}
#endif

}  // namespace

bool Tokens::read_ascii(const uint8_t* text, size_t n) {
  const size_t n_blocks = (n + 63) / 64;
  uint8_t* out = text_.at_least(64 * n_blocks + padding);
  uint64_t* words = masks_.at_least(3 * n_blocks);
  uint64_t *letters = words + n_blocks, *joiners = letters + n_blocks, joined = 0;
  const uint8_t shift = rule_.lowercase ? 32 : 0;
  for (size_t block = 0; block < n_blocks; block++) {
    Masks masks;
    if (64 * block + 64 <= n) {
      masks = look(text + 64 * block, out + 64 * block, shift);
    } else {
      uint8_t last[64] = {};
      std::memcpy(last, text + 64 * block, n - 64 * block);
      masks = look(last, out + 64 * block, shift);
    }
    if (masks.others) return false;
    words[block] = masks.words;
    letters[block] = masks.letters;
    joiners[block] = masks.joiners;
    joined |= masks.joiners;
  }
  if (joined && rule_.own) {  // what stands between two letters belongs to the word
    for (size_t block = 0; block < n_blocks; block++) {
      const uint64_t before = letters[block] << 1 | (block ? letters[block - 1] >> 63 : 0);
      const uint64_t after = letters[block] >> 1 | (block + 1 < n_blocks ? letters[block + 1] << 63 : 0);
      words[block] |= joiners[block] & before & after;
    }
  }
  // Where words begin and end, one after the other: a few too many are written, and overwritten.
  constexpr size_t step = 8;
  uint32_t* edges = edges_.at_least(n + 2 * step);
  size_t n_edges = 0;
  uint64_t carry = 0;
  for (size_t block = 0; block < n_blocks; block++) {
    uint64_t changes = words[block] ^ (words[block] << 1 | carry);
    carry = words[block] >> 63;
    const size_t many = static_cast<size_t>(__builtin_popcountll(changes));
    for (size_t first = 0; first < many; first += step) {
      for (size_t k = 0; k < step; k++) {
        const int bit = __builtin_ctzll(changes | uint64_t{1} << 63);
        edges[n_edges + first + k] = static_cast<uint32_t>(64 * block) + static_cast<uint32_t>(bit);
        changes &= changes - 1;
      }
    }
    n_edges += many;
  }
  if (carry) edges[n_edges++] = static_cast<uint32_t>(n);
  Span* spans = spans_.at_least(n_edges / 2);
  const uint32_t least = rule_.own ? 1 : 2;
  size_t found = 0;
  for (size_t k = 0; k < n_edges; k += 2) {
    spans[found] = {edges[k], edges[k + 1] - edges[k]};
    found += edges[k + 1] - edges[k] >= least;
  }
  n_spans_ = found;
  return true;
}

}  // namespace tallybayes
