// Maximum likelihood fit of Dirichlet distributions to the counts of several groups, column by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

// Columns of cells, as tallybayes/kernels/dirichlet_fit.py documents them.
struct DirichletCounts {
  const double* counts;  // (cells, groups), ascending within every cell
  const double* rows;       // (columns, groups)
  const double* many;  // (cells,): number of levels that a cell represents
  const int64_t* sizes;     // (columns,)
  const int64_t* n_levels;  // (columns,)
  size_t n_columns, n_groups;
};

// The concentrations of all cells.
std::vector<double> climb_dirichlet(const DirichletCounts&);

}  // namespace tallybayes
