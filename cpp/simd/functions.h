// The functions of one tier, in the order of the table in kernels.h.
#pragma once

#include "simd/vectors.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

uint64_t sum_words(Bytes, size_t);
void load_doubles(const Table&, size_t, size_t, double*, size_t);
void load_bytes(const Table&, size_t, size_t, uint8_t*, size_t);
void load_narrow_codes(const Table&, size_t, size_t, uint8_t*, size_t);
bool load_codes(const Column&, size_t, size_t, uint32_t, const uint8_t*, uint32_t*);
bool decode_groups(const Groups&, size_t, size_t, uint32_t*);
void sort_rows(const uint32_t*, size_t, size_t, uint32_t*, uint32_t*);
bool has_bad_bytes(const uint8_t*, const uint8_t*, size_t, uint8_t);
void group_masks(const uint32_t*, size_t, size_t, uint64_t*, size_t);
bool count_masks(const uint8_t*, ptrdiff_t, size_t, const uint64_t*, size_t, size_t, uint64_t*);
void count_pairs(const uint8_t*, const uint8_t*, size_t, uint8_t, uint8_t, const uint16_t*, uint32_t*, size_t);
void count_single(const uint32_t*, const uint32_t*, size_t, uint32_t, uint32_t*);
void count_weighted(const uint32_t*, const uint32_t*, const double*, size_t, uint32_t, double*);
void load_weights(const Weights&, size_t, size_t, size_t, double*, size_t, uint8_t*);
void count_soft(const uint32_t*, size_t, size_t, const double*, size_t, size_t, double* const*);
void level_masks(const uint8_t*, size_t, size_t, uint64_t*, size_t);
void count_mask_pairs(const uint64_t*, size_t, const uint64_t*, size_t, size_t, uint32_t*);
void count_joint_masks(const JointMember*, size_t, size_t, uint64_t*);
void count_joint_bytes(const JointMember*, size_t, size_t, uint16_t, uint32_t*, size_t);
void join_codes(const JointMember*, size_t, size_t, uint32_t, uint32_t*);
bool sum_binary_bytes(const RowSet&, size_t, uint32_t*);
Outcome sum_dense(const RowSet&, Kind, size_t, double, const DenseSums&);
void multinomial_terms(Bytes, ptrdiff_t, size_t, size_t, double*);
Outcome sum_moments(const RowSet&, size_t, const double*, double, double, bool, const MomentSums&);
bool sum_plain_moments(const SoftRows&, size_t, size_t, bool, const PlainSums&);
Fit judge_plain_moments(const PlainSums&, size_t, const double*);
void move_center(const PlainSums&, size_t);
void add_plain_moments(const PlainSums&, size_t, const double*, const MomentSums&);
void sum_soft(const double*, size_t, const double*, size_t, size_t, size_t, size_t, double*);
SoftOutcome write_dense_cells(const SoftRows&, Kind, size_t, size_t, const DenseCells&);
void write_product_cells(const SoftRows&, size_t, const double*, double*, size_t);
Outcome sum_sparse(const SparseRows&, const SparseSums&);
Outcome sum_sparse_soft(const SparseRows&, size_t, double*, double*, double*);
void log_bases(const SparseRows&, double*);
void pack_rows(const RowSet&, size_t, const double*, size_t, double*, double*, double*);
void multiply_panels(const double*, const double*, size_t, size_t, size_t, double*);
void add_scatter(const ScatterBlock&, double*, double*);
void squared_lengths(const double*, size_t, const double*, const double*, double*);
void softmax_rows(const float*, size_t, size_t, float*);
void fixed_rows(const float*, size_t, int32_t*);
void add_log_ratios(const double*, const double*, const double*, const double*, size_t, double, double, float, float*);
bool center_cells(double*, size_t, const double*);
void score_normals(const double*, size_t, const NormalTerms&, bool, double*);
void sum_normals(const double*, size_t, const double*, const NormalTerms&, const MixtureSums&);
void sum_squares(const double*, size_t, const double*, size_t, double*, double*, size_t);
void multiply_triangle(const double*, size_t, const double*, double*);
void share_rows(double*, size_t, double*, double*);

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
