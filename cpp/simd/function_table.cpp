#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

const Kernels kernels = {
    sum_words,        load_doubles,   load_bytes,     load_narrow_codes, load_codes,
    decode_groups,    sort_rows,      has_bad_bytes,  group_masks,
#if defined(__AVX512BW__)
    count_masks,
#else
    nullptr,
#endif
    count_pairs,      count_single,   count_weighted, load_weights,      count_soft,
    level_masks,      count_mask_pairs, count_joint_masks, count_joint_bytes, join_codes,
    sum_binary_bytes,
    sum_dense,        multinomial_terms, sum_moments,
    sum_plain_moments, judge_plain_moments, move_center, add_plain_moments,
    sum_soft,         write_dense_cells, write_product_cells,
    sum_sparse,       sum_sparse_soft, log_bases,
    pack_rows,        multiply_panels, add_scatter,   squared_lengths,
    softmax_rows,     fixed_rows,     add_log_ratios,
    center_cells,     score_normals,  sum_normals,    sum_squares,    multiply_triangle, share_rows,
};

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
