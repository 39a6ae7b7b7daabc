// The table of words: rare operations.
#include "text/word_table.h"

#include <random>
#include <stdexcept>

namespace tallybayes {

namespace {

uint64_t random_word() {
  try {
    std::random_device source;
    return uint64_t{source()} << 32 | source();
  } catch (const std::exception&) {  // if the system has no such source, memory addresses are one
    static const int somewhere = 0;
    return reinterpret_cast<uintptr_t>(&somewhere) * 0x9E3779B97F4A7C15;
  }
}

}  // namespace

const uint64_t word_seeds[2] = {random_word(), random_word()};

std::string_view WordTable::word(size_t number, uint8_t* room) const {
  const Key key = keys_[number];
  if (key.high >= long_word) {
    const uint8_t* kept = long_.data() + (key.high & ~long_word);
    return {reinterpret_cast<const char*>(kept + 8), static_cast<size_t>(load_word(kept))};
  }
  for (unsigned k = 0; k < 8; k++) {
    room[k] = static_cast<uint8_t>(key.low >> 8 * k);
    room[k + 8] = static_cast<uint8_t>(key.high >> 8 * k);
  }
  return {reinterpret_cast<const char*>(room), static_cast<size_t>(key.high >> 56)};
}

uint32_t WordTable::append(const WordKey& key, const uint8_t* at, size_t length) {
  if (size() >= INT32_MAX) throw std::length_error("there are more than 2**31 - 1 different words");
  uint64_t high = key.high;
  if (high >= long_word) {
    if (long_.empty()) long_.resize(1);
    high |= long_.size();
    for (unsigned k = 0; k < 8; k++) long_.push_back(static_cast<uint8_t>(uint64_t{length} >> 8 * k));
    long_.insert(long_.end(), at, at + length);
  }
  keys_.push_back({key.low, high});
  return static_cast<uint32_t>(size());
}

void WordTable::grow() {
  Zeros<Slot> larger(slots_.size() * 4);
  const size_t last = larger.size() - 1;
  for (size_t number = 0; number < size(); number++) {
    const uint64_t hash = hash_of_key(keys_[number].low, keys_[number].high);
    size_t place = hash & last;
    while (larger[place].number) place = (place + 1) & last;
    larger[place] = {tag_of(hash), static_cast<uint32_t>(number + 1)};
  }
  slots_.swap(larger);
}

}  // namespace tallybayes
