// Counting codes: three ways for unweighted rows, chosen by the driver according to the number of levels and groups,
// and one each for weights and soft weights.
#include "functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

bool has_bad_bytes(const uint8_t* codes, const uint8_t* present, size_t n, uint8_t limit) {
  uint8_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    bad |= static_cast<uint8_t>((codes[i] >= limit) & (codes[i] != 255)) & present[i];
  }
  return bad != 0;
}

void group_masks(const uint32_t* groups, size_t n, size_t n_groups, uint64_t* masks, size_t n_words) {
  for (size_t word = 0; word < n_words; word++) {
    uint8_t codes[64];
    for (size_t bit = 0; bit < 64; bit++) {
      const size_t row = word * 64 + bit;
      codes[bit] = row < n ? static_cast<uint8_t>(smaller<uint32_t>(groups[row], 255)) : 255;
    }
    for (size_t g = 0; g < n_groups; g++) {
#if defined(__AVX512BW__)
      const __m512i all = _mm512_loadu_si512(codes);
      masks[g * n_words + word] = _mm512_cmpeq_epi8_mask(all, _mm512_set1_epi8(static_cast<char>(g)));
#else
      uint64_t mask = 0;
      for (size_t bit = 0; bit < 64; bit++) mask |= static_cast<uint64_t>(codes[bit] == g) << bit;
      masks[g * n_words + word] = mask;
#endif
    }
  }
}

// Rows as bits: one comparison finds 64 rows of a level, one AND the 512 of a level and a group, one instruction counts
// them. No table look-up at all, so it beats histograms while levels · groups is small.
#if defined(__AVX512BW__)
__attribute__((target("avx512vpopcntdq")))  // not part of x86-64-v4: use_tier asks the processor before it is called
#endif
void count_masks(const uint8_t* codes, size_t n_words, const uint64_t* masks, size_t n_groups, size_t n_levels,
                 uint64_t* counts) {
#if defined(__AVX512BW__)
  // The masks of several levels are made before the first is counted: a vector load must not follow too closely on
  // the eight stores that fill it.
  constexpr size_t most_words = 64, most_levels = 16;
  alignas(64) uint64_t equal[most_levels][most_words];
  for (size_t start = 0; start < n_words; start += most_words) {
    const size_t words = smaller(most_words, n_words - start);
    for (size_t first = 0; first < n_levels; first += most_levels) {
      const size_t levels = smaller(most_levels, n_levels - first);
      for (size_t word = 0; word < words; word++) {
        const __m512i these = _mm512_loadu_si512(codes + (start + word) * 64);
        for (size_t level = 0; level < levels; level++) {
          equal[level][word] = _mm512_cmpeq_epi8_mask(these, _mm512_set1_epi8(static_cast<char>(first + level)));
        }
      }
      for (size_t g = 0; g < n_groups; g++) {
        const uint64_t* of_group = masks + g * n_words + start;
        for (size_t level = 0; level < levels; level++) {
          uint64_t* count = counts + ((first + level) * n_groups + g) * 8;
          __m512i sum = _mm512_loadu_si512(count);
          for (size_t word = 0; word < words; word += 8) {
            const __m512i both =
                _mm512_and_si512(_mm512_load_si512(equal[level] + word), _mm512_loadu_si512(of_group + word));
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(both));
          }
          _mm512_storeu_si512(count, sum);
        }
      }
    }
  }
#else
  for (size_t word = 0; word < n_words; word++) {
    for (size_t level = 0; level < n_levels; level++) {
      uint64_t equal = 0;
      for (size_t bit = 0; bit < 64; bit++) equal |= static_cast<uint64_t>(codes[word * 64 + bit] == level) << bit;
      for (size_t g = 0; g < n_groups; g++) {
        counts[(level * n_groups + g) * 8] +=
            static_cast<uint64_t>(__builtin_popcountll(equal & masks[g * n_words + word]));
      }
    }
  }
#endif
}

void count_pairs(const uint8_t* a, const uint8_t* b, size_t n, uint8_t size_a, uint8_t size_b,
                 const uint16_t* group_keys, uint32_t* counts, size_t n_keys) {
  constexpr size_t run = 512;
  uint16_t keys[run];
  const uint16_t step = static_cast<uint16_t>(size_b + 1);
  uint32_t *even = counts, *odd = counts + n_keys;
  for (size_t start = 0; start < n; start += run) {
    const size_t length = smaller(run, n - start);
    const uint8_t *first = a + start, *second = b + start;
    for (size_t i = 0; i < length; i++) {
      keys[i] = static_cast<uint16_t>(group_keys[start + i] + smaller(first[i], size_a) * step +
                                      smaller(second[i], size_b));
    }
    size_t i = 0;
    for (; i + 4 <= length; i += 4) {
      even[keys[i]]++;
      odd[keys[i + 1]]++;
      even[keys[i + 2]]++;
      odd[keys[i + 3]]++;
    }
    for (; i < length; i++) even[keys[i]]++;
  }
}

void count_single(const uint32_t* codes, const uint32_t* groups, size_t n, uint32_t size, uint32_t* counts) {
  const size_t step = static_cast<size_t>(size) + 1;
  for (size_t i = 0; i < n; i++) counts[groups[i] * step + codes[i]]++;
}

void count_weighted(const uint32_t* codes, const uint32_t* groups, const double* weights, size_t n, uint32_t size,
                    double* sums) {
  const size_t step = static_cast<size_t>(size) + 1;
  for (size_t i = 0; i < n; i++) sums[groups[i] * step + codes[i]] += weights[i];
}

void count_soft(const uint32_t* codes, const double* weights, size_t n, size_t n_groups, double* sums) {
  for (size_t i = 0; i < n; i++) {
    double* __restrict sum = sums + codes[i] * n_groups;
    const double* __restrict weight = weights + i * n_groups;
    for (size_t g = 0; g < n_groups; g++) sum[g] += weight[g];
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
