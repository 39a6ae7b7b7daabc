// Words and their numbers: a table with the short ones in it, so that finding one is to look at one place in memory.
#pragma once

#include <cstring>
#include <string_view>

#include "text_tokens.h"

namespace tallybayes {

inline uint64_t load_word(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

// Both halves of a product of 128 bits.
inline uint64_t multiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Words of at most 15 bytes are their own key, the length in the last byte. Longer ones have a hash for a key and lie
// elsewhere. Nobody knows the seeds of a process, so that nobody can write words that all fall into one place.
struct WordKey {
  uint64_t low, high, hash;
};
constexpr uint64_t long_word = uint64_t{0xFF} << 56;
extern const uint64_t word_seeds[2];

inline uint64_t hash_of_key(uint64_t low, uint64_t high) {
  return high >= long_word ? low : multiply(low ^ word_seeds[0], high ^ word_seeds[1]);
}

// Sixteen bytes are read, however short the word is.
inline WordKey key_of(const uint8_t* at, size_t length) {
  if (length < 16) {
    const uint64_t low_mask = length < 8 ? (uint64_t{1} << 8 * length) - 1 : ~uint64_t{0};
    const uint64_t high_mask = length > 8 ? (uint64_t{1} << 8 * (length - 8)) - 1 : 0;
    const uint64_t low = load_word(at) & low_mask;
    const uint64_t high = (load_word(at + 8) & high_mask) | uint64_t{length} << 56;
    return {low, high, hash_of_key(low, high)};
  }
  uint64_t sum = word_seeds[0] ^ length;
  for (size_t k = 0; k + 16 < length; k += 16) sum = multiply(load_word(at + k) ^ word_seeds[1], load_word(at + k + 8) ^ sum);
  sum = multiply(load_word(at + length - 16) ^ word_seeds[1], load_word(at + length - 8) ^ sum);
  return {sum, long_word, sum};
}

// The bucket of a word, the same for ever; tallybayes/kernels/tokens.py says how it is found.
inline uint32_t bucket_of(const uint8_t* at, size_t length, unsigned bits) {
  constexpr uint64_t odd = 0x9E3779B97F4A7C15;
  uint64_t sum = length * odd;
  for (; length > 8; length -= 8, at += 8) {
    sum = (sum ^ load_word(at)) * odd;
    sum ^= sum >> 32;
  }
  if (length) {
    sum = (sum ^ (load_word(at) & ~uint64_t{0} >> (64 - 8 * length))) * odd;
    sum ^= sum >> 32;
  }
  return static_cast<uint32_t>(sum * odd >> (64 - bits));
}

// Words by number, in the order in which they came.
class WordTable {
 public:
  struct Slot {
    uint64_t low, high;
    uint32_t number;  // and one more; 0: nothing is here
    uint32_t row, place, unused;
  };

  WordTable() : slots_(1024) {}

  size_t size() const { return keys_.size(); }
  // Before so many are looked for by `add`: they will not move.
  void make_room(size_t n) {
    while (2 * (size() + n) > slots_.size()) grow();
  }
  void prefetch(const WordKey& key) const { __builtin_prefetch(&slots_[key.hash & (slots_.size() - 1)]); }

  // Where the word is, or would be.
  const Slot& find(const WordKey& key, const uint8_t* at, size_t length) const {
    const size_t last = slots_.size() - 1;
    for (size_t place = key.hash & last;; place = (place + 1) & last) {
      const Slot& slot = slots_[place];
      if (!slot.number) return slot;
      if (slot.low != key.low) continue;
      if (key.high < long_word ? slot.high == key.high : slot.high >= long_word && same(slot, at, length)) return slot;
    }
  }
  // The same, but it is there afterwards.
  Slot& add(const WordKey& key, const uint8_t* at, size_t length) {
    Slot& slot = const_cast<Slot&>(find(key, at, length));
    if (!slot.number) fill(slot, key, at, length);
    return slot;
  }
  // The bytes of a word; `room` for 16 of them.
  std::string_view word(size_t number, uint8_t* room) const;

 private:
  struct Key {
    uint64_t low, high;
  };

  bool same(const Slot& slot, const uint8_t* at, size_t length) const {
    const uint8_t* kept = long_.data() + (slot.high & ~long_word);
    return load_word(kept) == length && std::memcmp(kept + 8, at, length) == 0;
  }
  void fill(Slot& slot, const WordKey& key, const uint8_t* at, size_t length);
  void grow();

  std::vector<Slot> slots_;
  std::vector<Key> keys_;      // by number
  std::vector<uint8_t> long_;  // lengths and bytes of long words
};

}  // namespace tallybayes
