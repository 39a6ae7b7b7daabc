#include "simd/dispatch.h"

#include "simd/processor.h"

namespace tallybayes {

const std::vector<Tier>& tiers() {
  static const std::vector<Tier> found = [] {
    std::vector<Tier> list;
    const Processor processor = this_processor();
#if defined(TALLYBAYES_BASELINE)
    list.push_back({"baseline", processor.baseline, baseline::kernels, &baseline::score_kernels,
                    &baseline::chain_kernels});
#endif
#if defined(TALLYBAYES_V3)
    list.push_back({"v3", processor.v3, v3::kernels, &v3::score_kernels, &v3::chain_kernels});
#endif
#if defined(TALLYBAYES_V4)
    list.push_back({"v4", processor.v4, v4::kernels, &v4::score_kernels, &v4::chain_kernels});
    if (!processor.counts_bits) {
#if defined(TALLYBAYES_V3)
      list.back().kernels.count_masks = nullptr;
      list.back().kernels.count_mask_pairs = v3::kernels.count_mask_pairs;
      list.back().kernels.count_joint_masks = v3::kernels.count_joint_masks;
#else
      list.back().runs = false;
#endif
    }
#endif
    return list;
  }();
  return found;
}

namespace {

const Tier* chosen = nullptr;

}  // namespace

const Tier& chosen_tier() { return *chosen; }
void choose_tier(const Tier& tier) { chosen = &tier; }

}  // namespace tallybayes
