// Scoring: log p(row, class) of every class, and the best class, from the prepared tables of the factors.
//
// Rows are scored in chunks that stay in cache. The scores of a chunk are stored by class, so that a vector holds one
// class of several rows: no lane is wasted, and the best class is found without operations across lanes. The scores of
// a row never depend on other rows.
#pragma once

#include <vector>

#include "score/score_kernels.h"
#include "core/driver_types.h"

namespace tallybayes {

enum class FactorKind : uint8_t { codes, linear, normal, student, student_by_column, left_out, sparse, terms };

// One factor with its tables in the layout of the loops.
struct ScoreFactor {
  FactorKind kind = FactorKind::codes;
  Check check = Check::finite;
  size_t n_columns = 0;
  size_t first_class = 0, n_classes = 0;  // the classes it adds to: all, or one for left_out

  // dense: groups of classes; within a group [column][parameter][class]
  size_t n_parameters = 0;
  Vector parameters, norms;
  Vector norm_before;  // [block of columns][class]: Σ norms of all earlier columns, and at the end of all
  Vector power;        // [class], FactorKind::student only

  // linear and binary: [byte of 8 columns][half][its 4 bits][padded class]; empty if that would be too large
  Aligned<double> bit_table;

  // codes, sparse and bits: [row][padded class]
  size_t pitch = 0;
  Aligned<double> table;
  std::vector<uint32_t> sizes, offsets;
  bool strict = false;
  bool skip_zero = false;  // sparse: some weights are −inf
  // sparse: for approximate scores; empty if these would not be reliable
  size_t small_pitch = 0;
  Aligned<uint16_t> small_table;
  Aligned<float> small_start;
  double largest = 0.0;                     // sparse: magnitude of weights and starts
};

struct ScoreBlock {
  Table table;
  Sparse sparse;
};

struct Scores {
  double* joint = nullptr;           // (n_rows, n_classes), or
  int64_t* best = nullptr;           // (n_rows,), or
  double* posterior = nullptr;       // (n_rows, n_classes) and
  double* density = nullptr;         // (n_rows,), with
  const double* log_prior = nullptr;  // (n_classes,) for rows that are impossible in every class
};

// The rows to score: all, or those with these numbers, whose results are written at these numbers.
struct Chosen {
  size_t n_rows = 0;
  const int64_t* rows = nullptr;
};

class Scorer {
 public:
  Scorer(const ScoreKernels& kernels, Vector start) : kernels_(kernels), start_(std::move(start)) {}
  void add_codes(const int64_t* sizes, size_t n_columns, const double* table, bool strict);
  // Parameters, norms and tables are (columns, classes), row-major. Normal: mean and precision; student: mean, inverse
  // spread and power.
  void add_dense(FactorKind kind, Check check, size_t n_columns, std::vector<Vector> parameters, const double* norms);
  // Mean, inverse spread and power (columns,) of one class.
  void add_left_out(size_t of_class, std::vector<Vector> parameters, const double* norms);
  void add_sparse(size_t n_columns, const double* weight, Check check);
  void add_terms();
  void prepare_guesses();  // for the best class only; does nothing if already done or unreliable
  size_t n_classes() const { return start_.size(); }
  const Vector& start() const { return start_; }
  const std::vector<ScoreFactor>& factors() const { return factors_; }
  const ScoreKernels& kernels() const { return kernels_; }
  // Whether both read blocks of the same shapes in the same way.
  bool reads_like(const Scorer& other) const;
  // False if a value is not allowed; find_invalid_value then finds it.
  bool score(const std::vector<ScoreBlock>&, const Chosen&, size_t threads, const Scores&) const;

 private:
  const ScoreKernels& kernels_;
  Vector start_;
  std::vector<ScoreFactor> factors_;
  bool tried_guesses_ = false;
};

// Every row by the scorer of its part, −1 for rows that are not written; out[part] is the output of its posterior.
bool score_by_part(const std::vector<const Scorer*>&, const std::vector<ScoreBlock>&, size_t n_rows,
                   const int32_t* part_of, size_t threads, const std::vector<Scores>& out);

// The classes of group `group` if n classes are distributed evenly over as few groups as possible.
struct ClassGroup {
  size_t first, n;
};
inline size_t class_groups(size_t n_classes) { return (n_classes + most_group_classes - 1) / most_group_classes; }
inline ClassGroup class_group(size_t n_classes, size_t group) {
  const size_t n_groups = class_groups(n_classes);
  const size_t first = group * n_classes / n_groups;
  return {first, (group + 1) * n_classes / n_groups - first};
}

inline int64_t entry_at(const Column& column, size_t i) {
  return column.type == Type::int32 ? reinterpret_cast<const int32_t*>(column.data)[i]
                                    : reinterpret_cast<const int64_t*>(column.data)[i];
}

struct InvalidValue {
  enum class What { nothing, cell, extent, index } what = What::nothing;
  size_t factor = 0, row = 0, column = 0;
  int64_t found = 0, stop = 0;
};
InvalidValue find_invalid_value(const Scorer&, const std::vector<ScoreBlock>&, const Chosen&);

// Smallest and largest value of every integer column; false where one exceeds the range of int64.
bool column_ranges(const ScoreKernels&, const Table&, size_t threads, std::vector<int64_t>& low,
                   std::vector<int64_t>& high);

// log Σ exp over every column as the parent of all others: (n, n_classes), row by row.
Vector score_pairs(const ScoreKernels&, const Table& rows, const PairTable&, size_t n_classes, size_t threads);

}  // namespace tallybayes
