// Contingency tables of several columns of codes: by bits if the table is small, otherwise through the key of every
// row's cell.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// Bits of the codes, out of 64, that equal this level.
inline uint64_t rows_with(const uint8_t* codes, uint8_t level) {
#if defined(__AVX512BW__)
  return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(codes), _mm512_set1_epi8(static_cast<char>(level)));
#else
  uint64_t rows = 0;
#if defined(__AVX2__)
  const __m256i wanted = _mm256_set1_epi8(static_cast<char>(level));
  for (int part = 1; part >= 0; part--) {
    const __m256i these = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes) + part);
    rows = rows << 32 | static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(these, wanted)));
  }
#elif defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(level));
  for (int part = 3; part >= 0; part--) {
    const __m128i these = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes) + part);
    rows = rows << 16 | static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(these, wanted)));
  }
#else
  for (size_t row = 0; row < 64; row++) rows |= static_cast<uint64_t>(codes[row] == level) << row;
#endif
  return rows;
#endif
}

}  // namespace

void level_masks(const uint8_t* codes, size_t n, size_t n_levels, uint64_t* masks, size_t n_words) {
  // The last rows, padded with missing cells.
  uint8_t rest[64];
  const size_t n_whole = n / 64;
  for (size_t i = 0; i < 64; i++) rest[i] = n_whole * 64 + i < n ? codes[n_whole * 64 + i] : 255;
  for (size_t level = 0; level < n_levels; level++, masks += n_words) {
    const uint8_t wanted = static_cast<uint8_t>(level);
    for (size_t word = 0; word < n_whole; word++) masks[word] = rows_with(codes + word * 64, wanted);
    for (size_t word = n_whole; word < n_words; word++) masks[word] = word == n_whole ? rows_with(rest, wanted) : 0;
  }
}

// The rows of a cell are the AND of its levels' rows, a strip at a time: the AND of the first columns stays in
// registers during the loop over the levels of the last column.
namespace {

#if defined(__AVX512BW__)
#define TALLYBAYES_COUNT_BITS __attribute__((target("avx512vpopcntdq")))

struct Strip {
  __m512i words[joint_strip / 8];
};

TALLYBAYES_COUNT_BITS inline Strip both(const Strip& shared, const uint64_t* masks) {
  Strip rows;
  for (size_t k = 0; k < joint_strip / 8; k++) {
    rows.words[k] = _mm512_and_si512(shared.words[k], _mm512_loadu_si512(masks + k * 8));
  }
  return rows;
}

TALLYBAYES_COUNT_BITS inline void add_count(const Strip& shared, const uint64_t* masks, uint64_t* count) {
  const Strip rows = both(shared, masks);
  __m512i sum = _mm512_loadu_si512(count);
  for (size_t k = 0; k < joint_strip / 8; k++) sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(rows.words[k]));
  _mm512_storeu_si512(count, sum);
}
#else
#define TALLYBAYES_COUNT_BITS

struct Strip {
  uint64_t words[joint_strip];
};

inline Strip both(const Strip& shared, const uint64_t* masks) {
  Strip rows;
  for (size_t k = 0; k < joint_strip; k++) rows.words[k] = shared.words[k] & masks[k];
  return rows;
}

inline void add_count(const Strip& shared, const uint64_t* masks, uint64_t* count) {
  uint64_t sum = 0;
  for (size_t k = 0; k < joint_strip; k++) {
    sum += count_ones(shared.words[k] & masks[k]);
  }
  *count += sum;
}
#endif

TALLYBAYES_COUNT_BITS inline uint64_t* count_levels(const Strip& shared, const JointMember& last, size_t word,
                                                    size_t n_words, uint64_t* counts) {
  for (size_t level = 0; level < last.size; level++, counts += 8) {
    add_count(shared, last.masks + level * n_words + word, counts);
  }
  return counts;
}

// Returns the position of the next counts.
TALLYBAYES_COUNT_BITS uint64_t* count_cells(const Strip& shared, const JointMember* members, size_t n_members,
                                            size_t word, size_t n_words, uint64_t* counts) {
  if (n_members == 1) return count_levels(shared, *members, word, n_words, counts);
  for (size_t level = 0; level < members->size; level++) {
    const Strip rows = both(shared, members->masks + level * n_words + word);
    counts = n_members == 2 ? count_levels(rows, members[1], word, n_words, counts)
                            : count_cells(rows, members + 1, n_members - 1, word, n_words, counts);
  }
  return counts;
}

}  // namespace

TALLYBAYES_COUNT_BITS  // not part of x86-64-v4: checked at run time before it is called
void count_joint_masks(const JointMember* members, size_t n_members, size_t n_words, uint64_t* counts) {
  Strip every;
  __builtin_memset(&every, 0xff, sizeof(every));
  for (size_t word = 0; word < n_words; word += joint_strip) {
    count_cells(every, members, n_members, word, n_words, counts);
  }
}

TALLYBAYES_COUNT_BITS
void count_mask_pairs(const uint64_t* first, size_t n_first, const uint64_t* second, size_t n_second, size_t n_words,
                      uint32_t* counts) {
  for (size_t a = 0; a < n_first; a++, first += n_words) {
    for (size_t b = 0; b < n_second; b++) {
      const uint64_t* other = second + b * n_words;
      uint64_t sum = 0;
      for (size_t word = 0; word < n_words; word++) {
        sum += count_ones(first[word] & other[word]);
      }
      *counts++ = static_cast<uint32_t>(sum);
    }
  }
}

namespace {

// Separate functions, because otherwise the compiler processes two members at a time without vectors.
#define TALLYBAYES_APART __attribute__((noinline))

template <class Code, class Key>
TALLYBAYES_APART void add_to_keys(const Code* __restrict__ codes, Key stride, size_t n, Key* __restrict__ keys) {
  for (size_t i = 0; i < n; i++) keys[i] = static_cast<Key>(keys[i] + codes[i] * stride);
}

template <class Code, class Key>
TALLYBAYES_APART void replace_missing(const Code* __restrict__ codes, Code missing, Key cell, size_t n,
                                      Key* __restrict__ keys) {
  for (size_t i = 0; i < n; i++) keys[i] = codes[i] == missing ? cell : keys[i];
}

}  // namespace

void count_joint_bytes(const JointMember* members, size_t n_members, size_t n, uint16_t n_cells, uint32_t* counts,
                       size_t pitch) {
  constexpr size_t run = 512;
  uint16_t keys[run];
  uint32_t *one = counts, *two = one + pitch, *three = two + pitch, *four = three + pitch;
  for (size_t start = 0; start < n; start += run) {
    const size_t length = smaller(run, n - start);
    __builtin_memset(keys, 0, sizeof(keys));
    for (size_t m = 0; m < n_members; m++) {
      add_to_keys(members[m].bytes + start, static_cast<uint16_t>(members[m].stride), length, keys);
    }
    for (size_t m = 0; m < n_members; m++) {
      replace_missing(members[m].bytes + start, uint8_t{255}, n_cells, length, keys);
    }
    size_t i = 0;
    for (; i + 4 <= length; i += 4) {
      one[keys[i]]++;
      two[keys[i + 1]]++;
      three[keys[i + 2]]++;
      four[keys[i + 3]]++;
    }
    for (; i < length; i++) one[keys[i]]++;
  }
}

void join_codes(const JointMember* members, size_t n_members, size_t n, uint32_t n_cells, uint32_t* keys) {
  __builtin_memset(keys, 0, n * sizeof(uint32_t));
  for (size_t m = 0; m < n_members; m++) add_to_keys(members[m].codes, members[m].stride, n, keys);
  for (size_t m = 0; m < n_members; m++) replace_missing(members[m].codes, members[m].size, n_cells, n, keys);
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
