// The Python module: functions with the signatures of tallybayes/kernels/reference/sums.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "bind/arrays.h"
#include "count/mdl_cuts.h"
#include "bind/hmm_bindings.h"
#include "bind/concatenate.h"
#include "bind/forest_bindings.h"
#include "core/find_invalid_cell.h"
#include "count/dirichlet_fit.h"
#include "spam/bindings.h"
#include "core/parallel.h"
#include "bind/incomplete_rows_bindings.h"
#include "bind/mixture_bindings.h"
#include "bind/score_bindings.h"
#include "bind/string_codes.h"
#include "bind/text_bindings.h"
#include "simd/dispatch.h"

namespace tallybayes {

namespace {

[[noreturn]] void raise(const Problem& problem, const Input& input, size_t n_columns, size_t n_entries) {
  const std::string row = std::to_string(problem.row);
  const std::string found = problem.huge ? std::to_string(static_cast<uint64_t>(problem.found))
                                         : std::to_string(problem.found);
  auto last = [](size_t n) { return std::to_string(static_cast<int64_t>(n) - 1); };
  std::string text;
  switch (problem.what) {
    case Problem::What::group:
      text = "row " + row + " has group code " + found + ", expected 0 to " + last(input.groups.n_groups) +
             ", or -1 to skip the row";
      throw nb::index_error(text.c_str());
    case Problem::What::extent:
      text = "indptr gives row " + row + " the entries " + found + " to " + std::to_string(problem.stop) +
             ", expected a rising range within 0 to " + std::to_string(n_entries);
      throw nb::index_error(text.c_str());
    case Problem::What::index:
      text = "row " + row + " has column index " + found + ", expected 0 to " + last(n_columns);
      throw nb::index_error(text.c_str());
    case Problem::What::cell: {
      const nb::object type = nb::module_::import_("tallybayes.errors").attr("CellError");
      const nb::tuple position = nb::make_tuple(problem.row, problem.column);
      PyErr_SetObject(type.ptr(), position.ptr());
      throw nb::python_error();
    }
    case Problem::What::nothing:
      break;
  }
  PyErr_SetString(PyExc_OverflowError,
                  "a sum over the rows exceeds the range of float64; rescale the columns or the weights");
  throw nb::python_error();
}

// Runs the work without the GIL, and searches for the invalid cell if it failed.
template <class Work, class Find>
void run(const Input& input, size_t n_columns, size_t n_entries, Work work, Find find) {
  Problem problem;
  bool good;
  {
    const nb::gil_scoped_release released;
    good = work();
    if (!good) problem = find();
  }
  if (!good) raise(problem, input, n_columns, n_entries);
}

Kind kind_of(const std::string& name) {
  if (name == "binary") return Kind::binary;
  if (name == "poisson") return Kind::poisson;
  if (name == "multinomial") return Kind::multinomial;
  throw nb::value_error("unknown kind");
}

nb::tuple python_count_groups(nb::handle group, size_t n_groups, nb::handle weight, size_t n_rows) {
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  check_rows(rows, n_rows);
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, 0};
  std::vector<int64_t> counted;
  Vector weighed;
  run(input, 0, 0, [&] { return count_groups(input, n_rows, counted, weighed); },
      [&] { return find_bad_group(input, n_rows); });
  return nb::make_tuple(to_array(std::move(counted), {n_groups}), to_array(std::move(weighed), {n_groups}));
}

// The numbers of levels of all columns of codes.
const int64_t* check_levels(const Borrowed& sizes, const Table& table) {
  const auto* level = reinterpret_cast<const int64_t*>(sizes.require({Type::int64}).data());
  if (sizes.length(0) != table.n_columns) throw nb::value_error("expected a size for every column");
  for (size_t j = 0; j < table.n_columns; j++) {
    if (level[j] < 0 || level[j] >= INT32_MAX) throw nb::value_error("expected sizes from 0 to 2147483646");
    if (table.column(j).type >= Type::float32) throw nb::type_error("expected integer codes");
  }
  return level;
}

nb::object python_count_codes(nb::handle columns, nb::handle sizes, nb::handle group, size_t n_groups, nb::handle weight,
                              size_t threads) {
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  const Borrowed levels(sizes);
  const int64_t* level = check_levels(levels, table);
  const size_t n_levels = static_cast<size_t>(std::accumulate(level, level + table.n_columns, int64_t{0}));
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  Vector counts;
  run(input, 0, 0, [&] { return count_codes(input, table, level, counts); },
      [&] { return find_bad_code(input, table, level); });
  return to_array(std::move(counts), {n_groups, n_levels});
}

nb::object python_count_joint(nb::handle columns, nb::handle sizes, const std::vector<std::vector<size_t>>& sets,
                              nb::handle weight, size_t threads) {
  const BorrowedRows rows = borrow_rows(nb::none(), 1, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  if (rows.weights.soft) throw nb::value_error("expected one weight for every row");
  const Borrowed levels(sizes);
  const int64_t* level = check_levels(levels, table);
  std::vector<JointSet> joint;
  size_t n_cells = 0;
  for (const std::vector<size_t>& set : sets) {
    uint64_t cells = 1;
    bool empty = false;
    if (set.empty()) throw nb::value_error("expected at least one column in every set");
    for (const size_t j : set) {
      if (j >= table.n_columns) throw nb::value_error("a set names a column that does not exist");
      empty |= level[j] == 0;
      cells = std::min<uint64_t>(cells * static_cast<uint64_t>(std::max<int64_t>(level[j], 1)), uint64_t{1} << 31);
    }
    if (cells >= uint64_t{1} << 31) throw nb::value_error("expected fewer than 2147483648 cells in a set");
    joint.push_back({set, empty ? 0 : static_cast<size_t>(cells)});
    n_cells += joint.back().n_cells;
  }
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  Vector tables;
  run(input, 0, 0, [&] { return count_joint(input, table, level, joint, tables); },
      [&] { return find_bad_code(input, table, level); });
  return to_array(std::move(tables), {n_cells});
}

nb::object python_sum_joint(nb::handle columns, nb::handle sizes, const std::vector<std::vector<size_t>>& sets,
                            const std::vector<double>& cell_starts, const std::vector<double>& line_starts,
                            nb::handle weight, size_t threads) {
  const BorrowedRows rows = borrow_rows(nb::none(), 1, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  if (rows.weights.soft) throw nb::value_error("expected one weight for every row");
  const Borrowed levels(sizes);
  const int64_t* level = check_levels(levels, table);
  const bool lines = !line_starts.empty();
  if (cell_starts.size() != sets.size() || (lines && line_starts.size() != sets.size())) {
    throw nb::value_error("expected a start for every set");
  }
  std::vector<JointSum> joint;
  for (size_t k = 0; k < sets.size(); k++) {
    uint64_t cells = 1;
    bool empty = false;
    if (sets[k].empty()) throw nb::value_error("expected at least one column in every set");
    for (const size_t j : sets[k]) {
      if (j >= table.n_columns) throw nb::value_error("a set names a column that does not exist");
      const uint64_t size = static_cast<uint64_t>(std::max<int64_t>(level[j], 1));
      empty |= level[j] == 0;
      if (cells > (uint64_t{1} << 63) / size) throw nb::value_error("expected fewer than 2**63 cells in a set");
      cells *= size;
    }
    joint.push_back({sets[k], empty ? 0 : cells, cell_starts[k], lines ? line_starts[k] : 0.0});
  }
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  Vector sums;
  run(input, 0, 0, [&] { return sum_joint(input, table, level, joint, lines, sums); },
      [&] { return find_bad_code(input, table, level); });
  const size_t n_sets = sets.size();
  return to_array(std::move(sums), {n_sets});
}

nb::tuple give_sums(CountSums& sums, Kind kind, size_t n_groups, size_t n_columns) {
  const bool by_cell = sums.any_missing;
  return nb::make_tuple(
      by_cell ? to_array(std::move(sums.cell_weight), {n_groups, n_columns})
              : to_array(std::move(sums.row_weight), {n_groups, 1}),
      to_array(std::move(sums.total), {n_groups, n_columns}),
      to_array(std::move(sums.log_base), {n_groups, kind == Kind::poisson ? n_columns : 1}));
}

nb::tuple python_sum_dense(nb::handle columns, const std::string& kind_name, nb::handle group, size_t n_groups,
                    nb::handle weight, size_t threads) {
  const Kind kind = kind_of(kind_name);
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  CountSums sums;
  run(input, 0, 0, [&] { return sum_dense(input, table, kind, sums); },
      [&] { return find_bad_cell(input, table, kind); });
  return give_sums(sums, kind, n_groups, table.n_columns);
}

nb::tuple python_sum_csr(nb::handle indptr, nb::handle indices, nb::handle data, size_t n_columns,
                  const std::string& kind_name, nb::handle group, size_t n_groups, nb::handle weight, size_t threads) {
  const Kind kind = kind_of(kind_name);
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  const Borrowed pointers(indptr), positions(indices), values(data);
  pointers.require({Type::int32, Type::int64});
  positions.require({Type::int32, Type::int64});
  values.require({values.type()});
  if (pointers.length(0) == 0 || positions.length(0) != values.length(0)) {
    throw nb::value_error("indptr is empty, or indices and data differ in length");
  }
  Sparse matrix{pointers.column(), positions.column(), values.column(), pointers.length(0) - 1, values.length(0),
                n_columns};
  check_rows(rows, matrix.n_rows);
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  CountSums sums;
  run(input, n_columns, matrix.n_entries, [&] { return sum_sparse(input, matrix, kind, sums); },
      [&] { return find_bad_entry(input, matrix, kind); });
  return give_sums(sums, kind, n_groups, n_columns);
}

nb::str python_row_order(nb::handle indptr, nb::handle indices, size_t n_columns, size_t threads) {
  const Borrowed pointers(indptr), positions(indices);
  pointers.require({Type::int32, Type::int64});
  positions.require({Type::int32, Type::int64});
  if (pointers.length(0) == 0) throw nb::value_error("indptr is empty");
  const Sparse matrix{pointers.column(), positions.column(), Column{}, pointers.length(0) - 1, positions.length(0),
                      n_columns};
  const Input input{chosen_tier().kernels, Groups{}, Weights{}, threads};
  RowOrder found = RowOrder::rising;
  run(input, n_columns, matrix.n_entries, [&] { return row_order(matrix, threads, found); },
      [&] { return find_bad_index(matrix); });
  return nb::str(found == RowOrder::rising ? "rising" : found == RowOrder::distinct ? "distinct" : "repeated");
}

nb::object python_log_base_csr(nb::handle indptr, nb::handle data, const std::string& kind_name, size_t threads) {
  const Kind kind = kind_of(kind_name);
  const Borrowed pointers(indptr), values(data);
  pointers.require({Type::int32, Type::int64});
  values.require({values.type()});
  if (pointers.length(0) == 0) throw nb::value_error("indptr is empty");
  const Sparse matrix{pointers.column(), Column{}, values.column(), pointers.length(0) - 1, values.length(0), 0};
  const Input input{chosen_tier().kernels, Groups{}, Weights{}, threads};
  Vector bases(matrix.n_rows);
  run(input, 0, matrix.n_entries, [&] { return log_bases(chosen_tier().kernels, matrix, kind, threads, bases.data()); },
      [&] { return find_bad_extent(matrix); });
  return to_array(std::move(bases), {matrix.n_rows});
}

nb::object python_best_cuts(nb::handle table, size_t n_classes, nb::handle n_log_n) {
  const Borrowed counts(table), logs(n_log_n);
  const auto* cells = reinterpret_cast<const int32_t*>(counts.require({Type::int32}).data());
  const auto* terms = reinterpret_cast<const double*>(logs.require({Type::float64}).data());
  const size_t n_cells = counts.length(0);
  if (n_classes == 0 || n_cells % n_classes) throw nb::value_error("expected as many counts for every class");
  int64_t total = 0;
  for (size_t i = 0; i < n_cells; i++) {
    if (cells[i] < 0) throw nb::value_error("expected counts of at least 0");
    total += cells[i];
  }
  if (static_cast<size_t>(total) >= logs.length(0)) throw nb::value_error("expected n log n of the total, too");
  std::vector<size_t> found;
  {
    const nb::gil_scoped_release release;
    found = best_cuts(cells, n_classes, n_cells / n_classes, terms);
  }
  return to_array(std::vector<int64_t>(found.begin(), found.end()), {found.size()});
}

using Driver = bool (*)(const Input&, const Table&, const double*, Moments&);

template <Driver driver, bool scatter>
nb::tuple python_sum_squares(nb::handle columns, nb::handle anchor, nb::handle group, size_t n_groups, nb::handle weight,
                      size_t threads) {
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  const Borrowed anchors(anchor);
  const auto* origin = reinterpret_cast<const double*>(anchors.require({Type::float64}).data());
  const size_t d = table.n_columns;
  if (anchors.length(0) != d) throw nb::value_error("expected an anchor for every column");
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, threads};
  Moments sums;
  run(input, 0, 0, [&] { return driver(input, table, origin, sums); },
      [&] { return find_bad_moment(input, table, origin, !scatter); });
  PairVector& weights = sums.any_missing ? sums.cell_weight : sums.row_weight;
  const size_t width = sums.any_missing ? d : 1;
  auto second = [&](Vector& half) {
    return scatter ? to_array(std::move(half), {n_groups, d, d}) : to_array(std::move(half), {n_groups, d});
  };
  return nb::make_tuple(to_array(std::move(weights.high), {n_groups, width}),
                        to_array(std::move(weights.low), {n_groups, width}),
                        to_array(std::move(sums.first.high), {n_groups, d}),
                        to_array(std::move(sums.first.low), {n_groups, d}), second(sums.second.high),
                        second(sums.second.low));
}

// Integer counts below 2²⁴ are exact as floats, which need half the memory.
nb::object python_count_pairs(nb::handle columns, nb::handle sizes, nb::handle group, size_t n_groups,
                              nb::handle weight) {
  const BorrowedRows rows = borrow_rows(group, n_groups, weight);
  const BorrowedTable borrowed = borrow_table(columns, rows.n_rows);
  const Table& table = borrowed.table;
  check_rows(rows, table.n_rows);
  if (rows.weights.soft) throw nb::value_error("expected one weight for every row");
  const Borrowed levels(sizes);
  const int64_t* level = check_levels(levels, table);
  const size_t n_levels = static_cast<size_t>(std::accumulate(level, level + table.n_columns, int64_t{0}));
  const Input input{chosen_tier().kernels, rows.groups, rows.weights, 1};
  const auto counted = [&](auto counts) {
    run(input, 0, 0, [&] { return count_every_pair(input, table, level, counts); },
        [&] { return find_bad_code(input, table, level); });
    return to_array(std::move(counts), {n_groups, n_levels, n_levels});
  };
  const bool exact = !rows.weights.given() && table.n_rows < size_t{1} << 24;
  return exact ? counted(std::vector<float>()) : counted(Vector());
}

nb::object python_climb_dirichlet(nb::handle counts, nb::handle rows, nb::handle many, nb::handle sizes,
                                  nb::handle n_levels, size_t n_groups) {
  const Borrowed of_cells(counts), of_columns(rows), times(many), parts(sizes), levels(n_levels);
  const auto doubles = [](const Borrowed& array) {
    return reinterpret_cast<const double*>(array.require({Type::float64}).data());
  };
  const auto whole = [](const Borrowed& array) {
    return reinterpret_cast<const int64_t*>(array.require({Type::int64}).data());
  };
  const DirichletCounts input{doubles(of_cells), doubles(of_columns), doubles(times),   whole(parts),
                              whole(levels),     parts.length(0),     n_groups};
  const size_t n_cells = times.length(0);
  size_t total = 0;
  for (size_t j = 0; j < input.n_columns; j++) {
    if (input.sizes[j] < 0 || static_cast<size_t>(input.sizes[j]) > n_cells - total) {
      throw nb::value_error("expected sizes that sum to the number of cells");
    }
    total += static_cast<size_t>(input.sizes[j]);
  }
  if (total != n_cells || levels.length(0) != input.n_columns || of_cells.length(0) != n_cells * n_groups ||
      of_columns.length(0) != input.n_columns * n_groups) {
    throw nb::value_error("expected a count of every cell and column in each group");
  }
  std::vector<double> found;
  {
    const nb::gil_scoped_release released;
    found = climb_dirichlet(input);
  }
  return to_array(std::move(found), {n_cells});
}

nb::object python_squared_lengths(nb::handle columns, nb::handle center, nb::handle roots, nb::handle shifts,
                                  size_t n_classes, size_t threads) {
  const BorrowedTable borrowed = borrow_table(columns, 0);
  const Table& table = borrowed.table;
  const Borrowed origin(center), matrices(roots), moved(shifts);
  const size_t d = table.n_columns;
  auto numbers = [](const Borrowed& array) {
    return reinterpret_cast<const double*>(array.require({Type::float64}).data());
  };
  if (origin.length(0) != d || matrices.length(0) != n_classes * d * d || moved.length(0) != n_classes * d) {
    throw nb::value_error("expected a center, a matrix and a shift for every class, of the table's columns");
  }
  const double *from = numbers(origin), *turn = numbers(matrices), *shift = numbers(moved);
  Vector lengths;
  {
    const nb::gil_scoped_release released;
    lengths = squared_lengths(chosen_tier().kernels, table, from, turn, shift, n_classes, threads);
  }
  return to_array(std::move(lengths), {table.n_rows, n_classes});
}

uint64_t python_read_bytes(nb::handle array, size_t threads) {
  const Borrowed borrowed(array);
  const nb::gil_scoped_release released;
  return read_bytes(chosen_tier().kernels, borrowed.data(), borrowed.n_bytes(), threads);
}

}  // namespace

NB_MODULE(_compiled, module) {
  for (const Tier& tier : tiers()) {
    if (tier.runs) choose_tier(tier);
  }
  module.def("built_tiers", [] {
    std::vector<std::string> names;
    for (const Tier& tier : tiers()) names.emplace_back(tier.name);
    return names;
  });
  module.def("available_tiers", [] {
    std::vector<std::string> names;
    for (const Tier& tier : tiers()) {
      if (tier.runs) names.emplace_back(tier.name);
    }
    return names;
  });
  module.def("compiler", [] {
#if defined(__apple_build_version__)
    return std::string("Apple Clang ") + __clang_version__;
#elif defined(__clang__)
    return std::string("Clang ") + __clang_version__;
#else
    return std::string("GCC ") + __VERSION__;
#endif
  });
  module.def("available_threads", &available_threads);
  module.def("use_tier", [](const std::string& name) {
    for (const Tier& tier : tiers()) {
      if (tier.runs && tier.name == name) return choose_tier(tier);
    }
    throw nb::value_error("unknown or unavailable tier");
  });
  module.def("count_groups", &python_count_groups, nb::arg("group").none(), nb::arg("n_groups"), nb::arg("weight").none(),
             nb::arg("n_rows"));
  module.def("count_codes", &python_count_codes, nb::arg("columns"), nb::arg("sizes"), nb::arg("group").none(),
             nb::arg("n_groups"), nb::arg("weight").none(), nb::arg("threads"));
  module.def("count_joint", &python_count_joint, nb::arg("columns"), nb::arg("sizes"), nb::arg("sets"),
             nb::arg("weight").none(), nb::arg("threads"));
  module.def("sum_joint", &python_sum_joint, nb::arg("columns"), nb::arg("sizes"), nb::arg("sets"),
             nb::arg("cell_starts"), nb::arg("line_starts"), nb::arg("weight").none(), nb::arg("threads"));
  module.def("sum_dense", &python_sum_dense, nb::arg("columns"), nb::arg("kind"), nb::arg("group").none(),
             nb::arg("n_groups"), nb::arg("weight").none(), nb::arg("threads"));
  module.def("sum_csr", &python_sum_csr, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("n_columns"),
             nb::arg("kind"), nb::arg("group").none(), nb::arg("n_groups"), nb::arg("weight").none(),
             nb::arg("threads"));
  module.def("row_order", &python_row_order, nb::arg("indptr"), nb::arg("indices"), nb::arg("n_columns"),
             nb::arg("threads"));
  module.def("log_base_csr", &python_log_base_csr, nb::arg("indptr"), nb::arg("data"), nb::arg("kind"),
             nb::arg("threads"));
  module.def("sum_moments", &python_sum_squares<sum_moments, false>, nb::arg("columns"), nb::arg("anchor"),
             nb::arg("group").none(), nb::arg("n_groups"), nb::arg("weight").none(), nb::arg("threads"));
  module.def("sum_scatter", &python_sum_squares<sum_scatter, true>, nb::arg("columns"), nb::arg("anchor"),
             nb::arg("group").none(), nb::arg("n_groups"), nb::arg("weight").none(), nb::arg("threads"));
  module.def("squared_lengths", &python_squared_lengths, nb::arg("columns"), nb::arg("center"), nb::arg("roots"),
             nb::arg("shifts"), nb::arg("n_classes"), nb::arg("threads"));
  module.def("count_pairs", &python_count_pairs, nb::arg("columns"), nb::arg("sizes"), nb::arg("group").none(),
             nb::arg("n_groups"), nb::arg("weight").none());
  module.def("climb_dirichlet", &python_climb_dirichlet, nb::arg("counts"), nb::arg("rows"), nb::arg("many"),
             nb::arg("sizes"), nb::arg("n_levels"), nb::arg("n_groups"));
  module.def("best_cuts", &python_best_cuts, nb::arg("table"), nb::arg("n_classes"), nb::arg("n_log_n"));
  module.def("read_bytes", &python_read_bytes, nb::arg("array"), nb::arg("threads"));
  define_scoring(module);
  define_chains(module);
  define_joining(module);
  define_partly_known(module);
  define_forests(module);
  define_mixtures(module);
  define_strings(module);
  define_mail(module);
  define_mail_words(module);
  define_text(module);
}

}  // namespace tallybayes
