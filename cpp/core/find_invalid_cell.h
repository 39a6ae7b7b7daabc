// Slow search for the invalid cell that a fast kernel has detected: always the same cell, whatever the threads did.
#pragma once

#include "core/driver_types.h"

namespace tallybayes {

struct Problem {
  enum class What { nothing, group, extent, index, cell } what = What::nothing;
  size_t row = 0;
  size_t column = 0;
  int64_t found = 0;  // the group code or column index, or the start of the extent
  int64_t stop = 0;   // of the extent
  bool huge = false;  // `found` is an unsigned 64-bit number
};

Problem find_bad_group(const Input&, size_t n_rows);
Problem find_bad_code(const Input&, const Table&, const int64_t* sizes);
Problem find_bad_cell(const Input&, const Table&, Kind);
Problem find_bad_moment(const Input&, const Table&, const double* anchor, bool missing_allowed);
Problem find_bad_entry(const Input&, const Sparse&, Kind);
Problem find_bad_extent(const Sparse&);
Problem find_bad_index(const Sparse&);

}  // namespace tallybayes
