// Reading memory at maximum bandwidth.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

uint64_t sum_words(Bytes bytes, size_t n_bytes) {
  typedef uint64_t Words __attribute__((vector_size(8 * lanes)));
  typedef uint64_t UnalignedWords __attribute__((vector_size(8 * lanes), aligned(1), may_alias));
  constexpr size_t step = 8 * lanes, streams = 4;
  Words sums[streams] = {};
  size_t i = 0;
  for (; i + streams * step <= n_bytes; i += streams * step) {
    for (size_t s = 0; s < streams; s++) sums[s] += *reinterpret_cast<const UnalignedWords*>(bytes + i + s * step);
  }
  uint64_t total = 0;
  for (size_t s = 0; s < streams; s++) {
    for (size_t lane = 0; lane < lanes; lane++) total += sums[s][lane];
  }
  for (; i + 8 <= n_bytes; i += 8) {
    uint64_t word;
    __builtin_memcpy(&word, bytes + i, 8);
    total += word;
  }
  for (; i < n_bytes; i++) total += bytes[i];
  return total;
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
