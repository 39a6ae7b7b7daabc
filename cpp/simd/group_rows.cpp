// Decoding of group codes, and sorting of the rows of a block by group.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

bool decode_groups(const Groups& groups, size_t first, size_t n, uint32_t* out) {
  const uint32_t skip = static_cast<uint32_t>(groups.n_groups);
  if (!groups.given()) {
    for (size_t i = 0; i < n; i++) out[i] = 0;
    return true;
  }
  // load_codes needs a mask of the counted rows; here all count. Processed in runs, so that one array of ones
  // suffices.
  uint8_t ones[256];
  for (auto& one : ones) one = 1;
  bool good = true;
  for (size_t i = 0; i < n; i += sizeof(ones)) {
    good &= load_codes(groups.codes, first + i, smaller(sizeof(ones), n - i), skip, ones, out + i);
  }
  return good;
}

void sort_rows(const uint32_t* groups, size_t n, size_t n_groups, uint32_t* starts, uint32_t* rows) {
#if defined(__AVX512F__)
  // Few groups: one pass per group, sixteen rows at a time, selects the matching rows.
  if (n_groups <= 12) {
    const __m512i step = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint32_t count = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
      starts[g] = count;
      const __m512i wanted = _mm512_set1_epi32(static_cast<int>(g));
      size_t i = 0;
      for (; i + 16 <= n; i += 16) {
        const __mmask16 match = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(groups + i), wanted);
        const __m512i numbers = _mm512_add_epi32(step, _mm512_set1_epi32(static_cast<int>(i)));
        _mm512_mask_storeu_epi32(rows + count, static_cast<__mmask16>((1u << __builtin_popcount(match)) - 1),
                                 _mm512_maskz_compress_epi32(match, numbers));
        count += static_cast<uint32_t>(__builtin_popcount(match));
      }
      for (; i < n; i++) {
        if (groups[i] == g) rows[count++] = static_cast<uint32_t>(i);
      }
    }
    starts[n_groups] = count;
    starts[n_groups + 1] = static_cast<uint32_t>(n);
    return;
  }
#endif
  for (size_t g = 0; g < n_groups + 2; g++) starts[g] = 0;
  for (size_t i = 0; i < n; i++) starts[groups[i] + 1]++;
  for (size_t g = 0; g <= n_groups; g++) starts[g + 1] += starts[g];
  for (size_t i = 0; i < n; i++) rows[starts[groups[i]]++] = static_cast<uint32_t>(i);
  for (size_t g = n_groups + 1; g > 0; g--) starts[g] = starts[g - 1];
  starts[0] = 0;
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
