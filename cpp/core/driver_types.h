// Arguments and results of the drivers: plain vectors. Only the files in bind/ depend on Python.
#pragma once

#include <vector>

#include "simd/kernels.h"

namespace tallybayes {

using Vector = std::vector<double>;

// An array aligned to a cache line.
template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(size_t n) { resize(n); }
  void resize(size_t n) { storage_.assign(n + 64 / sizeof(T), T{}); }
  // Allocates at least n elements; previous contents may be lost.
  void grow(size_t n) {
    if (n && storage_.size() < n + 64 / sizeof(T)) resize(n);
  }
  bool empty() const { return storage_.empty(); }
  T* data() { return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(storage_.data()) + 63) & ~uintptr_t{63}); }
  const T* data() const { return const_cast<Aligned*>(this)->data(); }

 private:
  std::vector<T> storage_;
};

// Every driver returns false if a group code, a CSR index or a cell is invalid.
struct Input {
  const Kernels& kernels;
  Groups groups;
  Weights weights;
  size_t threads;
};

bool count_codes(const Input&, const Table&, const int64_t* sizes, Vector& table);
// The columns of a contingency table, and its number of cells: all combinations of levels, with the levels of the last
// column contiguous.
struct JointSet {
  std::vector<size_t> columns;
  size_t n_cells;
};
// The concatenated tables of all sets.
bool count_joint(const Input&, const Table&, const int64_t* sizes, const std::vector<JointSet>& sets, Vector& tables);
// A contingency table that is reduced to one sum: the terms log Γ(start + n) − log Γ(start) of its cells (n log n if
// start is 0), minus the same terms of its rows, which sum over the last column. Fewer than 2⁶³ cells.
struct JointSum {
  std::vector<size_t> columns;
  uint64_t n_cells;
  double cell_start, line_start;
};
bool sum_joint(const Input&, const Table&, const int64_t* sizes, const std::vector<JointSum>& sets, bool lines,
               Vector& sums);
// Counts of each pair of levels in every group, (groups, levels, levels); 0 within a column.
template <class Count>
bool count_every_pair(const Input&, const Table&, const int64_t* sizes, std::vector<Count>& out);
bool count_groups(const Input&, size_t n_rows, std::vector<int64_t>& rows, Vector& weight);

struct CountSums {
  Vector row_weight;   // n_groups
  Vector cell_weight;  // n_groups × n_columns, valid if any_missing
  Vector total;        // n_groups × n_columns
  Vector log_base;     // n_groups × n_columns for Kind::poisson, otherwise n_groups
  bool any_missing = false;
};
bool sum_dense(const Input&, const Table&, Kind, CountSums&);

struct Sparse {
  Column indptr, indices, data;  // contiguous
  size_t n_rows, n_entries, n_columns;
};
bool sum_sparse(const Input&, const Sparse&, Kind, CountSums&);
// The order of the entries within rows, the worst over all rows; `data` is not read. False if indptr or indices are
// outside the matrix.
enum class RowOrder : uint8_t { rising, distinct, repeated };
bool row_order(const Sparse&, size_t threads, RowOrder&);
// The log base measure of every row; `indices` is not read. False if indptr is invalid.
bool log_bases(const Kernels&, const Sparse&, Kind, size_t threads, double* out);

// Pairs of arrays: high and low.
struct PairVector {
  Vector high, low;
  void resize(size_t n) {
    high.assign(n, 0.0);
    low.assign(n, 0.0);
  }
};
struct Moments {
  PairVector row_weight;   // n_groups
  PairVector cell_weight;  // n_groups × n_columns, valid if any_missing
  PairVector first;        // n_groups × n_columns
  PairVector second;       // n_groups × n_columns, or n_groups × n_columns² for the scatter
  bool any_missing = false;
};
bool sum_moments(const Input&, const Table&, const double* anchor, Moments&);
bool sum_scatter(const Input&, const Table&, const double* anchor, Moments&);

// ‖Aₖ(x − center) − shiftₖ‖² of every row and class, row after row; Aₖ lower triangular. NaN where a cell is NaN.
Vector squared_lengths(const Kernels&, const Table&, const double* center, const double* roots, const double* shifts,
                       size_t n_classes, size_t threads);

// One cell, for the slow search: as a number, and as the unsigned code with the same bits.
double cell_at(const Column&, size_t row);
uint64_t code_at(const Column&, size_t row);

uint64_t read_bytes(const Kernels&, Bytes, size_t n_bytes, size_t threads);

}  // namespace tallybayes
