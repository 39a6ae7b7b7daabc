// The Dirichlet under which the counts of several groups are most probable, column by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tallybayes {

// Columns of cells, as tallybayes/kernels/dirichlet.py describes them.
struct DirichletCounts {
  const double* counts;     // (cells, groups), rising in every cell
  const double* rows;       // (columns, groups)
  const double* many;       // (cells,): how many levels a cell stands for
  const int64_t* sizes;     // (columns,)
  const int64_t* n_levels;  // (columns,)
  size_t n_columns, n_groups;
};

// The concentrations of all cells.
std::vector<double> climb_dirichlet(const DirichletCounts&);

}  // namespace tallybayes
