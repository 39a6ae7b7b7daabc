#include "simd/hmm/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

const ChainKernels chain_kernels = {
    lanes,        load_levels,  exp_rows,     shift_rows,   share_rows,
    chain_forward, chain_backward, chain_write_row, add_products, wide_products,
    best_forward, trace_best,   log_forward,  log_backward,
};

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
