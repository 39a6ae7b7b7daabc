// The inner loops, compiled for every instruction set and selected at run time through this table of functions.
#pragma once

#include "core/elementary.h"
#include "bind/array_views.h"

namespace tallybayes {

// A block of rows of one group. `rows` are ascending row numbers relative to `base`.
struct RowSet {
  Bytes base;
  ptrdiff_t row_stride;
  const uint32_t* rows;
  size_t n_rows;
  const double* weights;  // one for each entry of `rows`; nullptr: all 1
  ptrdiff_t lookahead;  // bytes from a row to the row of the next block to prefetch; 0: none
};

// The running double-double sums of one group, arrays of `width` columns each.
struct MomentSums {
  double *weight_high, *weight_low, *first_high, *first_low, *second_high, *second_low;
};

// Consecutive rows as doubles, with soft weights: those of a row are contiguous, with stride `weight_pitch` between
// rows.
struct SoftRows {
  Bytes base;
  ptrdiff_t row_stride;
  size_t n_rows;
  const double* weights;
  size_t weight_pitch;
  ptrdiff_t lookahead;  // as in RowSet
};

// Σw, Σw·(x − center) and Σw·(x − center)² of one group in a block of rows, in float64, arrays of `width` columns
// each. `spread` is about Σw·(x − mean)² of the previous blocks.
struct PlainSums {
  double *center, *spread, *weight, *first, *second;
};
// Whether these sums can be used: not if the center is so far from the mean that digits were lost, nor if a value was
// missing, infinite or too large.
enum class Fit : uint8_t { good, far, bad };

// The terms to be summed for a row: the n columns and a one; for Kind::multinomial then the row's term; for
// Kind::poisson from `logs` on −log x! of the n columns. If a cell is missing the one is 0, and n ones for the present
// cells and another one follow from `present` on. Both start at a whole vector, because they are summed as vectors.
struct DenseCells {
  double* cells;
  size_t pitch, logs, present;
};
struct SoftOutcome {
  Outcome outcome;
  size_t width;  // number of cells written for a row
};

struct DenseSums {
  double *weight, *total, *log_base;  // arrays of `width` columns; log_base only for Kind::poisson
};

struct Extent {
  int64_t start, stop;
};

// The entries of some rows of a CSR matrix, all of one group.
struct SparseRows {
  const Extent* extents;
  size_t n_rows;
  const double* weights;  // nullptr: all 1
  const void* indices;
  bool wide_indices;  // int64, otherwise int32
  Column values;      // contiguous
  uint64_t n_columns;
  Kind kind;
};

struct SparseSums {
  double* total;     // n_columns
  double* log_base;  // n_columns for Kind::poisson, otherwise one number
  double* absent;  // n_columns: the weight of missing cells; nullptr until the first one
};

// A second-moment block: float64 sums over rows centered at `center`, moved to the anchor when added to the pairs.
struct ScatterBlock {
  size_t n_columns;
  size_t pitch;           // n_columns rounded up to whole tiles
  const double* product;  // pitch × pitch, upper tiles: Σ w·y·yᵀ
  const double* sum;      // Σ w·y
  const double *first_high, *first_low;  // Σ w·y + W·(center − anchor)
  const double *shift_high, *shift_low;  // center − anchor
};

constexpr size_t scatter_tile = 8;

// Rows whose squared distances are computed together, and rows of the triangular matrix that are multiplied together.
constexpr size_t length_panel = 32;
constexpr size_t length_block = 4;

// Columns with this many levels fit into the bytes that load_narrow_codes writes.
constexpr size_t most_narrow_levels = 254;

// Columns of codes that are counted together, so that their sums are independent.
constexpr size_t most_soft_columns = 4;

// Products of all pairs of columns are stored for soft weights up to this size.
constexpr size_t most_product_columns = 32;

// Words of bits, one per row, that are counted together for a cell of a contingency table.
constexpr size_t joint_strip = 32;

// A column of a contingency table, in the formats that its sets need.
struct JointMember {
  const uint64_t* masks;  // the rows of every level as bits, n_words words each
  const uint8_t* bytes;   // 255 for missing
  const uint32_t* codes;  // `size` for missing
  uint32_t size, stride;  // number of levels, and distance of two neighboring levels' cells
};

// EM for mixtures: rows of a chunk, whose cells lie column by column and whose scores lie class by class.
constexpr size_t mixture_rows = 128;
// The columns of a class: z = factor · x − shift has mean 0 and variance 1; log p(x) = norm − z² / 2.
struct NormalTerms {
  const double *factor, *shift, *norm;
};
// Σw, Σw·z and Σw·z² of every column of a class, eight partial sums each; no weights if no cell is missing.
struct MixtureSums {
  double *weight, *first, *second;
};

struct Kernels {
  uint64_t (*sum_words)(Bytes bytes, size_t n_bytes);

  // Rows [first, first + n) of a table as row-major doubles, `pitch` apart.
  void (*load_doubles)(const Table&, size_t first, size_t n, double* out, size_t pitch);
  // The same for one-byte types, kept as bytes.
  void (*load_bytes)(const Table&, size_t first, size_t n, uint8_t* out, size_t pitch);
  // Codes as bytes, stored by column with stride `pitch`: 255 for missing, 254 for all other codes above 253.
  void (*load_narrow_codes)(const Table&, size_t first, size_t n, uint8_t* out, size_t pitch);
  // The codes of one column as numbers in [0, size]; `size` for missing. False if a row with `present` (1 or 0) has a
  // code that is neither valid nor missing.
  bool (*load_codes)(const Column&, size_t first, size_t n, uint32_t size, const uint8_t* present, uint32_t* out);

  // Group codes in [0, n_groups]; n_groups for skipped rows. False if a code is neither valid nor missing.
  bool (*decode_groups)(const Groups&, size_t first, size_t n, uint32_t* out);
  // Stable sort of row numbers by group; starts has n_groups + 2 entries (the last set: rows to skip).
  void (*sort_rows)(const uint32_t* groups, size_t n, size_t n_groups, uint32_t* starts, uint32_t* rows);

  // Whether there is a code in [limit, 254] in a row with `present` 1.
  bool (*has_bad_bytes)(const uint8_t* codes, const uint8_t* present, size_t n, uint8_t limit);
  // Bit masks of the rows of every group, n_words words of 64 rows each, followed by those of all groups together.
  void (*group_masks)(const uint32_t* groups, size_t n, size_t n_groups, uint64_t* masks, size_t n_words);
  // counts[level * n_groups + group] (eight partial sums each) += rows with that level and group. False if a row of a
  // group has a code that is neither a level nor 255. n_words is a multiple of 8, n_levels below 64; `lookahead` is
  // the distance to the data needed next. nullptr if the processor cannot count bits in vectors.
  bool (*count_masks)(const uint8_t* codes, ptrdiff_t lookahead, size_t n_words, const uint64_t* masks, size_t n_groups,
                      size_t n_levels, uint64_t* counts);
  // Joint counts of two byte columns and a group: key = group_keys + min(a, size_a) · (size_b + 1) + min(b, size_b).
  // Two tables of n_keys counters alternate, so that equal neighbors do not wait for each other.
  void (*count_pairs)(const uint8_t* a, const uint8_t* b, size_t n, uint8_t size_a, uint8_t size_b,
                      const uint16_t* group_keys, uint32_t* counts, size_t n_keys);
  // counts[group · (size + 1) + code]
  void (*count_single)(const uint32_t* codes, const uint32_t* groups, size_t n, uint32_t size, uint32_t* counts);
  void (*count_weighted)(const uint32_t* codes, const uint32_t* groups, const double* weights, size_t n, uint32_t size,
                         double* sums);
  // Soft weights as rows of doubles with stride `pitch` (elements beyond n_groups are unchanged); present[i] is
  // whether a row has a positive weight.
  void (*load_weights)(const Weights&, size_t first, size_t n, size_t n_groups, double* out, size_t pitch,
                       uint8_t* present);
  // sums[column][code · pitch + group] += the row's weights. The codes of a column are `capacity` from those of the
  // next, at most most_soft_columns of them; `pitch` is a multiple of eight.
  void (*count_soft)(const uint32_t* codes, size_t capacity, size_t n_columns, const double* weights, size_t n,
                     size_t pitch, double* const* sums);

  // Contingency tables. masks[level · n_words + word]: bits of the n rows with that level.
  void (*level_masks)(const uint8_t* codes, size_t n, size_t n_levels, uint64_t* masks, size_t n_words);
  // counts[first · n_second + second] = number of rows in both masks, of n_words each.
  void (*count_mask_pairs)(const uint64_t* first, size_t n_first, const uint64_t* second, size_t n_second,
                           size_t n_words, uint32_t* counts);
  // counts[cell] (eight partial sums each) += rows of that cell. n_words is a multiple of joint_strip.
  void (*count_joint_masks)(const JointMember*, size_t n_members, size_t n_words, uint64_t* counts);
  // counts[Σ code · stride] += 1, or counts[n_cells] if a code is missing. Four tables with distance `pitch`
  // alternate, so that equal neighbors do not wait for each other; 0: there is only one.
  void (*count_joint_bytes)(const JointMember*, size_t n_members, size_t n, uint16_t n_cells, uint32_t* counts,
                            size_t pitch);
  // keys[row] = Σ code · stride, or n_cells if a code is missing.
  void (*join_codes)(const JointMember*, size_t n_members, size_t n, uint32_t n_cells, uint32_t* keys);

  // total[j] += Σ x over byte cells 0 or 1; false if a cell is larger. n_columns >= 64, at most 255 rows.
  bool (*sum_binary_bytes)(const RowSet&, size_t n_columns, uint32_t* total);
  Outcome (*sum_dense)(const RowSet&, Kind, size_t width, double set_weight, const DenseSums&);
  // log Γ(N + 1) − Σ log Γ(x + 1) of every row, N its sum.
  void (*multinomial_terms)(Bytes base, ptrdiff_t row_stride, size_t n_rows, size_t n_columns, double* terms);
  // `careful`: missing cells are expected.
  Outcome (*sum_moments)(const RowSet&, size_t width, const double* anchor, double weight_high, double weight_low,
                         bool careful, const MomentSums&);

  // Soft weights. Adds the rows to the sums of one group; true if a cell with a positive weight is missing (if
  // `careful`; otherwise NaN makes the sums NaN).
  bool (*sum_plain_moments)(const SoftRows&, size_t group, size_t width, bool careful, const PlainSums&);
  Fit (*judge_plain_moments)(const PlainSums&, size_t width, const double* anchor);
  // The center becomes the mean, if there is one.
  void (*move_center)(const PlainSums&, size_t width);
  // Moves the sums to the anchor and adds them; updates the spread.
  void (*add_plain_moments)(const PlainSums&, size_t width, const double* anchor, const MomentSums&);
  // sums[group · pitch + k] += Σ weight · cell k, for k up to `width`, padded. `pitch` is a multiple of eight.
  void (*sum_soft)(const double* weights, size_t weight_pitch, const double* cells, size_t pitch, size_t n_rows,
                   size_t n_groups, size_t width, double* sums);
  SoftOutcome (*write_dense_cells)(const SoftRows&, Kind, size_t n_columns, size_t n_groups, const DenseCells&);
  // With y = x − center: y₀·y₀, y₀·y₁, … y₁·y₁, …, then y, then a one. May write eight more doubles after the last
  // row.
  void (*write_product_cells)(const SoftRows&, size_t n_columns, const double* center, double* cells, size_t pitch);

  Outcome (*sum_sparse)(const SparseRows&, const SparseSums&);
  // The same for several groups at once: weights and sums have `pitch` (1, 2, 4 or 8) numbers for every row and
  // column.
  Outcome (*sum_sparse_soft)(const SparseRows&, size_t pitch, double* totals, double* log_base, double* absent);
  // out[row] = −Σ log Γ(x + 1), plus log Γ(N + 1) for Kind::multinomial, N its sum; NaN if an x is negative or not
  // finite. Indices are not read.
  void (*log_bases)(const SparseRows&, double* out);

  // Copies centered rows in panels of eight columns: packed[(panel · capacity + row) · 8 + lane]; adds Σ w·y to sum.
  void (*pack_rows)(const RowSet&, size_t n_columns, const double* center, size_t capacity, double* packed,
                    double* packed_weighted, double* sum);
  // product (pitch × pitch, upper tiles) += leftᵀ · right
  void (*multiply_panels)(const double* left, const double* right, size_t n_rows, size_t capacity, size_t pitch,
                          double* product);
  void (*add_scatter)(const ScatterBlock&, double* second_high, double* second_low);

  // out[row] = ‖A·x − shift‖² for the rows of a panel, panel[column · length_panel + row], and a packed triangle A.
  void (*squared_lengths)(const double* panel, size_t n_blocks, const double* packed, const double* shift, double* out);

  // Class probabilities of log scores, both (classes, n).
  void (*softmax_rows)(const float* score, size_t n, size_t n_classes, float* proba);
  // Numbers from 0 on as multiples of 2⁻¹⁶.
  void (*fixed_rows)(const float* x, size_t n, int32_t* out);
  // sum += rate · log((n_in + weight · n_out + strength) / (e_in + weight · e_out + strength))
  void (*add_log_ratios)(const double* n_in, const double* n_out, const double* e_in, const double* e_out, size_t n,
                         double weight, double strength, float rate, float* sum);

  // Subtracts the center of every column from the cells of a chunk; true if a cell is missing (NaN).
  bool (*center_cells)(double* cells, size_t n_columns, const double* center);
  // scores += log p(row | class); missing cells, which are expected if `missing`, are skipped.
  void (*score_normals)(const double* cells, size_t n_columns, const NormalTerms&, bool missing, double* scores);
  void (*sum_normals)(const double* cells, size_t n_columns, const double* weights, const NormalTerms&,
                      const MixtureSums&);
  // Σw·x and Σw·x² of every column and class, eight partial sums each, `pitch` doubles from class to class.
  void (*sum_squares)(const double* cells, size_t n_columns, const double* weights, size_t n_classes, double* first,
                      double* second, size_t pitch);
  // out = A · cells, for a triangle A that is packed in blocks as for squared_lengths; the columns fill whole blocks.
  void (*multiply_triangle)(const double* cells, size_t n_blocks, const double* packed, double* out);
  // The scores of a chunk become probabilities of the classes; log p(row), and the entropy of the probabilities.
  void (*share_rows)(double* scores, size_t n_classes, double* density, double* entropy);
};

// log x! for whole x below the size of the table; log Γ(x + 1) for everything else.
constexpr size_t n_log_factorials = 1024;
extern const double* const log_factorial_table;

}  // namespace tallybayes
