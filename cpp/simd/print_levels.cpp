// Prints the builds of the inner loops that this machine needs, as a CMake list.
#include <cstdio>

#include "simd/processor.h"

int main() {
  const tallybayes::Processor processor = tallybayes::this_processor();
  // Without vectors that count bits, v4 uses the functions of v3 for them.
  std::printf("%s", processor.v4 ? (processor.counts_bits ? "v4" : "v3;v4") : processor.v3 ? "v3" : "baseline");
}
