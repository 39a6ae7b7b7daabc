// Words and their numbers: a hash table that contains the short words, so that a lookup reads one memory location.
#pragma once

#include <cstring>
#include <string_view>

#include "text/huge_pages.h"
#include "text/tokenizer.h"

namespace tallybayes {

inline uint64_t load_word(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

// Both halves of a 128-bit product.
inline uint64_t multiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Words of at most 15 bytes are their own key, with the length in the last byte. Longer ones have a hash as key and
// are stored separately. The seeds are random for each process, so that crafted words cannot all collide.
struct WordKey {
  uint64_t low, high, hash;
};
constexpr uint64_t long_word = uint64_t{0xFF} << 56;
extern const uint64_t word_seeds[2];

// Mask of the first bytes of sixteen.
struct ByteMask {
  uint64_t low, high;
};
constexpr ByteMask first_bytes(size_t n) {
  const auto some = [](size_t bytes) { return bytes < 8 ? (uint64_t{1} << 8 * bytes) - 1 : ~uint64_t{0}; };
  return {some(n), n < 8 ? 0 : some(n - 8)};
}
constexpr ByteMask byte_masks[16] = {
    first_bytes(0), first_bytes(1), first_bytes(2),  first_bytes(3),  first_bytes(4),  first_bytes(5),
    first_bytes(6), first_bytes(7), first_bytes(8),  first_bytes(9),  first_bytes(10), first_bytes(11),
    first_bytes(12), first_bytes(13), first_bytes(14), first_bytes(15)};

inline uint64_t hash_of_key(uint64_t low, uint64_t high) {
  return high >= long_word ? low : multiply(low ^ word_seeds[0], high ^ word_seeds[1]);
}

// Sixteen bytes are read, however short the word is.
inline WordKey key_of(const uint8_t* at, size_t length) {
  if (length < 16) {
    const uint64_t low = load_word(at) & byte_masks[length].low;
    const uint64_t high = (load_word(at + 8) & byte_masks[length].high) | uint64_t{length} << 56;
    return {low, high, multiply(low ^ word_seeds[0], high ^ word_seeds[1])};
  }
  uint64_t sum = word_seeds[0] ^ length;
  for (size_t k = 0; k + 16 < length; k += 16) {
    sum = multiply(load_word(at + k) ^ word_seeds[1], load_word(at + k + 8) ^ sum);
  }
  sum = multiply(load_word(at + length - 16) ^ word_seeds[1], load_word(at + length - 8) ^ sum);
  return {sum, long_word, sum};
}

// The bucket of a word, fixed forever; tallybayes/kernels/text/tokenizer.py documents the hash.
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

// Words by number, in order of first occurrence. The data of a lookup are small: eight bytes for a slot, sixteen for a
// word. Early words, which are usually frequent ones, are contiguous.
class WordTable {
 public:
  WordTable() : slots_(1024) {}

  size_t size() const { return keys_.size(); }
  // Before this many are added.
  void make_room(size_t n) {
    while (2 * (size() + n) > slots_.size()) grow();
  }
  // The number of a word plus one, or 0.
  uint32_t find(const WordKey& key, const uint8_t* at, size_t length) const {
    return slots_[seek(key, at, length)].number;
  }
  // The same, adding the word if it is new.
  uint32_t add(const WordKey& key, const uint8_t* at, size_t length) {
    Slot& slot = slots_[seek(key, at, length)];
    if (!slot.number) slot = {tag_of(key.hash), append(key, at, length)};
    return slot.number;
  }

  // In steps, for many words at once: prefetch the slot, then get the probable number of the word (plus one, or 0),
  // then verify it. Long words are never verified: they need `find` or `add`.
  void prefetch(const WordKey& key) const { __builtin_prefetch(&slots_[key.hash & (slots_.size() - 1)]); }
  uint32_t guess(const WordKey& key) const {
    const size_t last = slots_.size() - 1;
    size_t place = key.hash & last;
    const uint32_t tag = tag_of(key.hash);
    while (slots_[place].number && slots_[place].tag != tag) place = (place + 1) & last;
    const uint32_t number = slots_[place].number;
    if (number) __builtin_prefetch(&keys_[number - 1]);
    return number;
  }
  bool surely(uint32_t number, const WordKey& key) const {
    return number && keys_[number - 1].low == key.low && keys_[number - 1].high == key.high;
  }

  // The bytes of a word; `room` for 16 of them.
  std::string_view word(size_t number, uint8_t* room) const;

 private:
  struct Slot {
    uint32_t tag, number;  // number plus one; 0: the slot is empty
  };
  struct Key {
    uint64_t low, high;
  };

  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t seek(const WordKey& key, const uint8_t* at, size_t length) const {
    const size_t last = slots_.size() - 1;
    size_t place = key.hash & last;
    while (slots_[place].number &&
           (slots_[place].tag != tag_of(key.hash) || !same(keys_[slots_[place].number - 1], key, at, length))) {
      place = (place + 1) & last;
    }
    return place;
  }
  bool same(const Key& kept, const WordKey& key, const uint8_t* at, size_t length) const {
    if (kept.low != key.low || key.high < long_word || kept.high < long_word) {
      return kept.low == key.low && kept.high == key.high;
    }
    const uint8_t* bytes = long_.data() + (kept.high & ~long_word);
    return load_word(bytes) == length && std::memcmp(bytes + 8, at, length) == 0;
  }
  uint32_t append(const WordKey& key, const uint8_t* at, size_t length);
  void grow();

  Zeros<Slot> slots_;
  std::vector<Key> keys_;  // by number
  std::vector<uint8_t> long_;  // lengths and bytes of long words; none of them at 0
};

}  // namespace tallybayes
