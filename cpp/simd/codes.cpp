// Counts of codes: three methods for unweighted rows, selected by the driver according to the number of levels and
// groups, and one each for weights and soft weights.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

bool has_bad_bytes(const uint8_t* codes, const uint8_t* present, size_t n, uint8_t limit) {
  // The missing code plus one is 0, so the largest value nearly always decides.
  uint8_t largest = 0;
  for (size_t i = 0; i < n; i++) largest = larger(largest, static_cast<uint8_t>(codes[i] + 1));
  if (largest <= limit) return false;
  uint8_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    bad |= static_cast<uint8_t>((codes[i] >= limit) & (codes[i] != 255)) & present[i];
  }
  return bad != 0;
}

void group_masks(const uint32_t* groups, size_t n, size_t n_groups, uint64_t* masks, size_t n_words) {
  for (size_t word = 0; word < n_words; word++) {
    uint64_t united = 0;
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
      united |= masks[g * n_words + word];
    }
    masks[n_groups * n_words + word] = united;
  }
}

// Rows as bits. The codes of 64 rows are split into planes, one word per binary digit. The rows of a level are the AND
// of its digits' planes (or their complements), the rows of a level in a group one more AND, and one instruction
// counts 512 of them. Without table look-ups, this is faster than histograms while levels · groups is small.
// Enough digits for the number of levels: the code of a missing cell, with all bits set, is then no level.
#if defined(__AVX512BW__)
namespace {

constexpr size_t most_digits = 6;

template <size_t strips>
__attribute__((target("avx512vpopcntdq"))) inline bool count_strips(const uint8_t* codes, ptrdiff_t lookahead,
                                                                     const uint64_t* masks, size_t n_words,
                                                                     size_t n_groups, size_t n_levels,
                                                                     uint64_t* counts) {
  size_t digits = 2;
  while (n_levels >> digits) digits++;
  const __m512i limit = _mm512_set1_epi8(static_cast<char>(n_levels)), missing = _mm512_set1_epi8(-1);
  const uint64_t* present = masks + n_groups * n_words;
  uint64_t bad = 0;
  alignas(64) uint64_t planes[most_digits][strips * 8];
  for (size_t word = 0; word < strips * 8; word++) {
    __builtin_prefetch(codes + word * 64 + lookahead);
    const __m512i these = _mm512_loadu_si512(codes + word * 64);
    const __mmask64 outside = _mm512_cmpge_epu8_mask(these, limit);
    bad |= _mm512_mask_cmpneq_epi8_mask(outside, these, missing) & present[word];
    planes[0][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(1));
    planes[1][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(2));
    planes[2][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(4));
    planes[3][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(8));
    if (digits > 4) planes[4][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(16));
    if (digits > 5) planes[5][word] = _mm512_test_epi8_mask(these, _mm512_set1_epi8(32));
  }
  if (bad) return false;
  for (size_t level = 0; level < n_levels; level++) {
    __m512i rows[strips];
    for (size_t s = 0; s < strips; s++) rows[s] = _mm512_set1_epi64(-1);
    for (size_t digit = 0; digit < digits; digit++) {
      const __m512i flip = _mm512_set1_epi64(level >> digit & 1 ? 0 : -1);
      for (size_t s = 0; s < strips; s++) {
        const __m512i plane = _mm512_load_si512(planes[digit] + s * 8);
        rows[s] = _mm512_ternarylogic_epi64(rows[s], plane, flip, 0x60);  // rows & (plane ^ flip)
      }
    }
    for (size_t g = 0; g < n_groups; g++) {
      uint64_t* count = counts + (level * n_groups + g) * 8;
      __m512i sum = _mm512_loadu_si512(count);
      for (size_t s = 0; s < strips; s++) {
        const __m512i both = _mm512_and_si512(rows[s], _mm512_loadu_si512(masks + g * n_words + s * 8));
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(both));
      }
      _mm512_storeu_si512(count, sum);
    }
  }
  return true;
}

}  // namespace

__attribute__((target("avx512vpopcntdq")))  // not part of x86-64-v4: checked at run time before it is called
#endif
bool count_masks(const uint8_t* codes, ptrdiff_t lookahead, size_t n_words, const uint64_t* masks, size_t n_groups,
                 size_t n_levels, uint64_t* counts) {
  bool good = true;
#if defined(__AVX512BW__)
  size_t word = 0;
  for (; good && word + 64 <= n_words; word += 64) {
    good = count_strips<8>(codes + word * 64, lookahead, masks + word, n_words, n_groups, n_levels, counts);
  }
  for (; good && word < n_words; word += 8) {
    good = count_strips<1>(codes + word * 64, lookahead, masks + word, n_words, n_groups, n_levels, counts);
  }
#else
  // Never called: counting bit by bit would be slower than the histograms.
  (void)codes, (void)lookahead, (void)n_words, (void)masks, (void)n_groups, (void)n_levels, (void)counts;
#endif
  return good;
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

void load_weights(const Weights& weights, size_t first, size_t n, size_t n_groups, double* out, size_t pitch,
                  uint8_t* present) {
  for (size_t i = 0; i < n; i++) present[i] = 0;
  const bool by_row = weights.group_stride == sizeof(double);
  for (size_t i = 0; by_row && i < n; i++) {
    Bytes row = weights.data + static_cast<ptrdiff_t>(first + i) * weights.row_stride;
    __builtin_memcpy(out + i * pitch, row, n_groups * sizeof(double));
    for (size_t g = 0; g < n_groups; g++) present[i] |= out[i * pitch + g] != 0.0;
  }
  for (size_t g = 0; !by_row && g < n_groups; g++) {
    for (size_t i = 0; i < n; i++) {
      const double weight = weights.at(first + i, g);
      out[i * pitch + g] = weight;
      present[i] |= weight != 0.0;
    }
  }
}

namespace {

// `vectors`: number of vectors in a row of weights, or 0 if it varies.
template <size_t columns, size_t vectors>
void count_columns(const uint32_t* codes, size_t capacity, const double* weights, size_t n, size_t pitch,
                   double* const* sums) {
  const size_t step = vectors ? vectors * lanes : pitch;
  double* to[columns];
  for (size_t c = 0; c < columns; c++) to[c] = sums[c];
  for (size_t i = 0; i < n; i++) {
    for (size_t at = 0; at < step; at += lanes) {
      const Doubles weight = load(weights + i * pitch + at);
      for (size_t c = 0; c < columns; c++) {
        double* sum = to[c] + codes[c * capacity + i] * pitch + at;
        store(sum, load(sum) + weight);
      }
    }
  }
}

template <size_t columns>
void count_some(const uint32_t* codes, size_t capacity, const double* weights, size_t n, size_t pitch,
                double* const* sums) {
  if (pitch == 8) return count_columns<columns, 8 / lanes>(codes, capacity, weights, n, 8, sums);
  count_columns<columns, 0>(codes, capacity, weights, n, pitch, sums);
}

}  // namespace

void count_soft(const uint32_t* codes, size_t capacity, size_t n_columns, const double* weights, size_t n, size_t pitch,
                double* const* sums) {
  switch (n_columns) {
    case 4: return count_some<4>(codes, capacity, weights, n, pitch, sums);
    case 3: return count_some<3>(codes, capacity, weights, n, pitch, sums);
    case 2: return count_some<2>(codes, capacity, weights, n, pitch, sums);
    default: return count_some<1>(codes, capacity, weights, n, pitch, sums);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
