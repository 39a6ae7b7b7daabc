#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

const ScoreKernels score_kernels = {
    load_columns,  examine,      add_norms,             add_linear,
    add_normal,    add_student,  add_student_by_column, add_left_out,
    log_products,  load_bits,    sum_bits,              load_entries,
    sum_entries,   score_pairs,  sum_tempered,          sum_weights,
#if defined(__F16C__) && defined(__FMA__) && defined(__AVX2__)
    guess_best,
#else
    nullptr,  // 16-bit floats would be converted one by one
#endif
    add_turned,    best_classes, turn_scores,           normalize,
    widen_ranges,
};

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
