// The inner loops of scoring, compiled for every instruction set like those of kernels.h.
#pragma once

#include "simd/kernels.h"

namespace tallybayes {

// Which values a factor allows. NaN is a missing value (in CSR, an error).
enum class Check : uint8_t { binary, count, finite, nonnegative };

constexpr size_t block_columns = 32;  // dense cells are transposed in blocks of this many columns
constexpr size_t most_group_classes = 6;  // classes whose sums stay in registers
constexpr size_t panel_classes = 8;       // tables looked up by row are padded to whole cache lines
constexpr size_t most_chunk_rows = 64;
constexpr size_t row_pad = 16;            // chunks of rows are padded to two vectors of the widest tier
constexpr double least_left = 1e-5;  // proportion of the spread left without the row; less has lost too many digits

// Cells that are transposed next. They are prefetched during the summation: all at once they would stall it.
struct Ahead {
  Bytes cells = nullptr;
  ptrdiff_t row_stride = 0, column_stride = 0;
  size_t n_rows = 0;
  size_t row_bytes = 0;  // 0: rows are not contiguous, columns are
};

// A block of transposed cells, and the running sums of one group of classes, `pitch` doubles from class to class.
struct DenseWork {
  const double* cells;  // [column][row]
  size_t pitch, n_rows, n_columns, n_classes;
  bool missing;              // some cell is NaN
  const double* parameters;  // [column][parameter][class], of this group of classes
  const double* norms;  // [column][class]: term of every present cell, regardless of its value
  double *sum, *norm, *exponent;
  Ahead ahead;
};

// Codes of a table and the offsets of their rows in a table of doubles. Row 0 of the table is all 0: the missing code.
struct CodeColumns {
  const uint32_t* limits;   // the first invalid code
  const uint32_t* offsets;  // of code 0, in doubles
  size_t n_repeated;  // both arrays repeat this many times, to validate several short rows as one long one
  uint32_t pitch;           // of the table, in doubles
  bool strict;              // a code that is neither valid nor missing is an error
};

// Log terms of one-dependence estimators: for every level of every column a panel of 1 + n_levels rows, the first all
// 0.
struct PairTable {
  const double* table;
  size_t n_columns, n_levels, pitch;  // the levels of all columns; doubles in a row, a multiple of panel_classes
  const uint32_t* sizes;              // levels of every column, one at least
  const uint32_t* offsets;            // of a column's first level within a panel, in doubles
};

// Some rows of a CSR matrix whose extents were checked.
struct SparseChunk {
  const Extent* extents;
  size_t n_rows;
  const void* indices;
  bool wide_indices;
  Column values;
  uint64_t n_columns, n_entries;
  Check check;
  bool skip_zero;  // some weights are −inf: a stored 0 must not be multiplied by them
};

// Rows by class with stride `n_rows`, a multiple of eight; the log probability of the true class, and its frequency.
struct TemperedRows {
  const double *scores, *truth, *base, *weights;
  size_t n_rows, n_classes;
};
constexpr size_t tempered_sums = 6;

struct ScoreKernels {
  // Rows [first, first + n) and columns [column, column + n_columns) as doubles, column after column, `pitch` apart.
  // Rows up to the next multiple of row_pad become 0.
  void (*load_columns)(const Table&, size_t first, size_t n, size_t column, size_t n_columns, double* out,
                       size_t pitch);
  Outcome (*examine)(const double* cells, size_t pitch, size_t n_rows, size_t n_columns, Check);
  // Adds the terms that do not depend on the value of present cells, if some are missing.
  void (*add_norms)(const DenseWork&);
  void (*add_linear)(const DenseWork&);
  void (*add_normal)(const DenseWork&);
  void (*add_student)(const DenseWork&);            // sum and exponent: the product of (1 + t), see there
  void (*add_student_by_column)(const DenseWork&);  // sum: Σ power · log(1 + t)
  // sum: Σ power · log(1 − t) of one class; NaN if 1 − t is below least_left
  void (*add_left_out)(const DenseWork&);
  // sum = log of the product held by sum and exponent; NaN or infinity if it went out of range.
  void (*log_products)(double* sum, const double* exponent, size_t n);

  // Sets bit `column` of a row's bits, from one-byte cells; false if a cell is neither 0 nor 1. Bits beyond the last
  // column of the last byte are 0. `bytes`: working memory for the rows if they are not contiguous.
  bool (*load_bits)(const Table&, size_t first, size_t n, uint8_t* bits, size_t bit_pitch, uint8_t* bytes);
  // out[row · pitch + class] += Σ table[(4 columns, their bits)][class]
  void (*sum_bits)(const uint8_t* bits, size_t bit_pitch, size_t n_rows, size_t n_bytes, const double* table,
                   size_t pitch, double* out);

  // out[row · n_columns + column] = offset of the row of that code. False if a code is not allowed.
  bool (*load_entries)(const Table&, size_t first, size_t n, const CodeColumns&, uint32_t* out);
  // out[row · pitch + class] = Σ table[entry + class]
  void (*sum_entries)(const uint32_t* entries, size_t n_rows, size_t n_columns, const double* table, size_t pitch,
                      double* out);
  // out[row · pitch + class] = log Σ exp over every column as the parent of all others; for a missing parent, over its
  // levels. `terms`: room for (n_rows · n_columns + the largest number of levels) · pitch doubles.
  void (*score_pairs)(const uint32_t* entries, size_t n_rows, const PairTable&, double* terms, double* out);
  // With p = (1 − doubt) · exp(sharpness · truth) / Σ exp(sharpness · scores) and q = doubt · base: the weighted sums
  // of log(p + q), its derivatives with respect to log sharpness and the log-odds of doubt, and its second
  // derivatives, the mixed one negated.
  void (*sum_tempered)(const TemperedRows&, double sharpness, double doubt, double* sums);
  // out[row · pitch + class] = Σ value · table[index · pitch + class]. False if a cell or an index is not allowed.
  bool (*sum_weights)(const SparseChunk&, const double* table, size_t pitch, double* out);
  // The best class of every row from starts and weights that are at most 0, the weights as 16-bit floats, or −1 if
  // rounding might change it. `largest`: magnitude of weights and starts in float64; `sums`: working memory for one
  // row. nullptr if the processor cannot read such floats.
  bool (*guess_best)(const SparseChunk&, const float* start, const uint16_t* table, size_t pitch, size_t n_classes,
                     double largest, float* sums, int64_t* best);

  // scores[class · score_pitch + row] += rows[row · pitch + class]
  void (*add_turned)(const double* rows, size_t pitch, size_t n_rows, size_t n_classes, double* scores,
                     size_t score_pitch);
  void (*best_classes)(const double* scores, size_t pitch, size_t n_rows, size_t n_classes, int64_t* best);
  // out[row · n_classes + class] = scores[class · pitch + row]
  void (*turn_scores)(const double* scores, size_t pitch, size_t n_rows, size_t n_classes, double* out);

  // Bayes' rule: the scores become log p(class | row), and density[row] log p(row). Rows with −inf in every class get
  // `log_prior` and a density of −inf; those with NaN become NaN.
  void (*normalize)(double* scores, size_t pitch, size_t n_rows, size_t n_classes, const double* log_prior,
                    double* density);

  // Lowers `low` and raises `high` (n numbers of this type each) by n_runs runs of n cells, `stride` bytes apart.
  void (*widen_ranges)(Type, Bytes cells, ptrdiff_t stride, size_t n_runs, size_t n, void* low, void* high);
};

}  // namespace tallybayes
