// Random numbers that are the same everywhere (SplitMix64, Steele et al. 2014), and which rows a tree is grown from.
#pragma once

#include <cstdint>

namespace tallybayes {

constexpr uint64_t golden = 0x9E3779B97F4A7C15u;

inline uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

struct Random {
  uint64_t state;
  Random(uint64_t seed, uint64_t stream) : state(mix_bits(seed * golden + stream)) {}
  uint64_t next() { return mix_bits(state += golden); }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }
};

// Whether a tree is grown from the row with this key; `bag` is the proportion of such rows times 2³².
inline bool in_bag(uint64_t key, uint64_t tree, uint64_t bag) { return mix_bits(key + (tree + 1) * golden) >> 32 < bag; }

}  // namespace tallybayes
