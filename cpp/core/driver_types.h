// What the drivers take and give back: plain vectors, so that only arrays, module and score_module know Python.
#pragma once

#include <vector>

#include "simd/kernels.h"

namespace tallybayes {

using Vector = std::vector<double>;

// An array that starts on a cache line.
template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(size_t n) { resize(n); }
  void resize(size_t n) { storage_.assign(n + 64 / sizeof(T), T{}); }
  // Room for n at least; what was there before may be lost.
  void grow(size_t n) {
    if (n && storage_.size() < n + 64 / sizeof(T)) resize(n);
  }
  bool empty() const { return storage_.empty(); }
  T* data() { return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(storage_.data()) + 63) & ~uintptr_t{63}); }
  const T* data() const { return const_cast<Aligned*>(this)->data(); }

 private:
  std::vector<T> storage_;
};

// Every driver returns false where it met a group code, a CSR index or a cell it must not count.
struct Input {
  const Kernels& kernels;
  Groups groups;
  Weights weights;
  size_t threads;
};

bool count_codes(const Input&, const Table&, const int64_t* sizes, Vector& table);
// The columns of a joint table, and its number of cells: all combinations of levels, those of the last column side by
// side.
struct JointSet {
  std::vector<size_t> columns;
  size_t n_cells;
};
// The tables of all sets, one after another.
bool count_joint(const Input&, const Table&, const int64_t* sizes, const std::vector<JointSet>& sets, Vector& tables);
// A joint table of which only a sum is wanted: over its cells the terms log Γ(start + n) − log Γ(start), n log n where
// the start is 0, and less the same over its lines, in which the cells of the last column are added up. Fewer than 2⁶³
// cells.
struct JointSum {
  std::vector<size_t> columns;
  uint64_t n_cells;
  double cell_start, line_start;
};
bool sum_joint(const Input&, const Table&, const int64_t* sizes, const std::vector<JointSum>& sets, bool lines,
               Vector& sums);
// How often every group has each pair of levels of two columns, (groups, levels, levels); 0 within a column.
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
// How the entries of the rows lie, at worst; `data` is not read. False where indptr or indices point outside.
enum class RowOrder : uint8_t { rising, distinct, repeated };
bool row_order(const Sparse&, size_t threads, RowOrder&);
// The log base measure of every row; `indices` is not read. False where indptr is wrong.
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

// One cell, for the careful searches: as a number, and as the unsigned code with the same bits.
double cell_at(const Column&, size_t row);
uint64_t code_at(const Column&, size_t row);

uint64_t read_bytes(const Kernels&, Bytes, size_t n_bytes, size_t threads);

}  // namespace tallybayes
