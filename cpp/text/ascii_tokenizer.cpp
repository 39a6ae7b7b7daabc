// Tokenization 64 bytes at a time: classes of bytes as bit masks, then the starts and ends of words. Only stretches
// between blanks with non-ASCII characters are processed one by one.
#include <cstring>

#include "text/tokenizer.h"
#include "bind/array_views.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tallybayes {

namespace {

struct Masks {
  uint64_t words = 0, letters = 0, joiners = 0, others = 0;
};

#if defined(__SSE2__)
// Classifies 64 bytes and writes them, in lower case if `shift` is 32 instead of 0.
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
  // The top bit of every byte from 0 to 127 between `low` and `high`.
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

void Tokens::read_words(const uint8_t* text, size_t n) {
  const size_t n_blocks = (n + 63) / 64;
  out_ = text_.at_least(64 * n_blocks + 3 * n + padding);  // an invalid byte becomes three
  uint64_t* words = masks_.at_least(4 * n_blocks);
  uint64_t *letters = words + n_blocks, *joiners = letters + n_blocks, *others = joiners + n_blocks;
  uint64_t any_joiner = 0, any_other = 0;
  const uint8_t shift = rule_.lowercase ? 32 : 0;
  for (size_t block = 0; block < n_blocks; block++) {
    Masks masks;
    if (64 * block + 64 <= n) {
      masks = look(text + 64 * block, out_ + 64 * block, shift);
    } else {
      uint8_t last[64] = {};
      std::memcpy(last, text + 64 * block, n - 64 * block);
      masks = look(last, out_ + 64 * block, shift);
    }
    words[block] = masks.words;
    letters[block] = masks.letters;
    joiners[block] = masks.joiners;
    others[block] = masks.others;
    any_joiner |= masks.joiners;
    any_other |= masks.others;
  }
  if (any_joiner && rule_.own) {  // a joiner between two letters belongs to the word
    for (size_t block = 0; block < n_blocks; block++) {
      const uint64_t before = letters[block] << 1 | (block ? letters[block - 1] >> 63 : 0);
      const uint64_t after = letters[block] >> 1 | (block + 1 < n_blocks ? letters[block + 1] << 63 : 0);
      words[block] |= joiners[block] & before & after;
    }
  }
  if (!any_other) {
    n_spans_ = flatten(words, n, spans_);
    return;
  }
  const size_t n_bytes = find_stretches(text, n, words, others);
  const size_t n_plain = flatten(words, n, plain_);
  spans_.at_least(n_plain + n_bytes);
  const Span* next = plain_.data();
  const Span* const end = next + n_plain;
  end_ = 64 * n_blocks;
  for (const Stretch& stretch : stretches_) {
    for (; next != end && next->start < stretch.start; next++) spans_.data()[n_spans_++] = *next;
    read_stretch(text + stretch.start, stretch.stop - stretch.start);
  }
  n_spans_ = static_cast<size_t>(std::copy(next, end, spans_.data() + n_spans_) - spans_.data());
}

// Finds stretches that must be processed one by one, removes their words from the bits, and returns their length in
// bytes. No word, accent or final sigma depends on text beyond a blank.
size_t Tokens::find_stretches(const uint8_t* text, size_t n, uint64_t* words, const uint64_t* others) {
  constexpr uint8_t blank = 0x20;  // or any other control character
  stretches_.clear();
  size_t stop = 0, n_bytes = 0;
  for (size_t block = 0; 64 * block < n; block++) {
    for (uint64_t some = others[block]; some; some &= some - 1) {
      size_t start = 64 * block + static_cast<size_t>(__builtin_ctzll(some));
      if (start < stop) continue;
      const size_t before = stop;
      stop = start + 1;
      while (start > before && text[start - 1] > blank) start--;
      while (stop < n && text[stop] > blank) stop++;
      stretches_.push_back({start, stop});
      n_bytes += stop - start;
      for (size_t k = start / 64; k <= (stop - 1) / 64; k++) {
        const uint64_t from = 64 * k < start ? ~uint64_t{0} << (start - 64 * k) : ~uint64_t{0};
        const uint64_t to = 64 * (k + 1) > stop ? (uint64_t{1} << (stop - 64 * k)) - 1 : ~uint64_t{0};
        words[k] &= ~(from & to);
      }
    }
  }
  return n_bytes;
}

// Words of ASCII as spans; returns their number.
size_t Tokens::flatten(const uint64_t* words, size_t n, Room<Span>& room) {
  // Starts and ends of words, alternating, in the memory of the spans; a few too many are written, and overwritten.
  constexpr size_t step = 8;
  Span* spans = room.at_least(n / 2 + 1 + step);
  uint32_t* edges = reinterpret_cast<uint32_t*>(spans);
  size_t n_edges = 0;
  uint64_t carry = 0;
  for (size_t block = 0; 64 * block < n; block++) {
    uint64_t changes = words[block] ^ (words[block] << 1 | carry);
    carry = words[block] >> 63;
    const size_t many = static_cast<size_t>(count_ones(changes));
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
  const uint32_t least = rule_.own ? 1 : 2;
  size_t found = 0;
  for (size_t k = 0; k < n_edges; k += 2) {
    const uint32_t start = edges[k], length = edges[k + 1] - start;
    spans[found] = {start, length};
    found += length >= least;
  }
  return found;
}

}  // namespace tallybayes
