// The builds of the inner loops, one per instruction set, and the active one.
#pragma once

#include <vector>

#include "hmm/hmm_kernels.h"
#include "simd/kernels.h"
#include "score/score_kernels.h"

namespace tallybayes {

#define TALLYBAYES_DECLARE_TIER(name)     \
  namespace name {                        \
  extern const Kernels kernels;           \
  extern const ScoreKernels score_kernels; \
  extern const ChainKernels chain_kernels; \
  }
#if defined(TALLYBAYES_BASELINE)
TALLYBAYES_DECLARE_TIER(baseline)
#endif
#if defined(TALLYBAYES_V3)
TALLYBAYES_DECLARE_TIER(v3)
#endif
#if defined(TALLYBAYES_V4)
TALLYBAYES_DECLARE_TIER(v4)
#endif

struct Tier {
  const char* name;
  bool runs;  // on this processor
  Kernels kernels;
  const ScoreKernels* score;
  const ChainKernels* chain;
};

// All compiled builds, the best one last.
const std::vector<Tier>& tiers();

// The active build; the module sets it before any loop is called.
const Tier& chosen_tier();
void choose_tier(const Tier&);

}  // namespace tallybayes
