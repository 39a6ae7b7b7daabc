// Driver of the sums over CSR rows. A table of groups × columns per thread would not fit into memory (or cache), so
// the rows are sorted by group, and a thread processes one group at a time with one row of sums.
#include <stdexcept>

#include "core/parallel.h"
#include "core/group_rows.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t batch_rows = 1024;  // extents and weights passed to a kernel at a time
constexpr size_t most_chunks = 64;     // of one group
constexpr size_t most_slice = 8;  // groups that are processed at once with soft weights

int64_t entry_at(const Column& indptr, size_t i) {
  if (indptr.type == Type::int32) return reinterpret_cast<const int32_t*>(indptr.data)[i];
  return reinterpret_cast<const int64_t*>(indptr.data)[i];
}

Extent extent_of(const Sparse& matrix, size_t row) {
  return {entry_at(matrix.indptr, row), entry_at(matrix.indptr, row + 1)};
}

bool valid_extents(const Sparse& matrix) {
  for (size_t row = 0; row < matrix.n_rows; row++) {
    const Extent extent = extent_of(matrix, row);
    if (extent.start < 0 || extent.stop < extent.start) return false;
    if (extent.stop > static_cast<int64_t>(matrix.n_entries)) return false;
  }
  return true;
}

SparseRows rows_of(const Sparse& matrix, Kind kind) {
  SparseRows rows{};
  rows.indices = matrix.indices.data;
  rows.wide_indices = matrix.indices.type == Type::int64;
  rows.values = matrix.data;
  rows.n_columns = matrix.n_columns;
  rows.kind = kind;
  return rows;
}

// A run of the sorted rows, all of one group; `index` counts the chunks of the group. A single chunk (`alone`) is
// summed in the result itself.
struct Chunk {
  size_t group, begin, end, index;
  bool alone;
};

struct SparseWorker {
  std::vector<Extent> extents;
  Vector weights, total, log_base, absent;
};

struct Attempt {
  const Input& input;
  const Sparse& matrix;
  Kind kind;
  bool with_absent;
  CountSums& out;
  Vector& absent;  // n_groups × n_columns, if with_absent
  std::atomic<bool> needs_absent{false};

  size_t n_log_base() const { return kind == Kind::poisson ? matrix.n_columns : 1; }
  bool judge(Outcome outcome) {
    if (outcome == Outcome::missing) needs_absent = true;
    return outcome == Outcome::clean;
  }
};

std::vector<Chunk> make_chunks(const Sparse& matrix, const std::vector<uint32_t>& starts,
                               const std::vector<uint32_t>& rows, size_t n_groups) {
  std::vector<Chunk> chunks;
  for (size_t g = 0; g < n_groups; g++) {
    const size_t n = starts[g + 1] - starts[g];
    size_t entries = 0;
    for (size_t k = starts[g]; k < starts[g + 1]; k++) {
      const Extent extent = extent_of(matrix, rows[k]);
      entries += static_cast<size_t>(extent.stop - extent.start);
    }
    // A chunk must be large enough to justify clearing a row of sums and adding it to the result.
    const size_t n_chunks = std::clamp<size_t>(entries / (8 * matrix.n_columns + 65536), 1, most_chunks);
    for (size_t index = 0; n && index < n_chunks; index++) {
      chunks.push_back({g, starts[g] + n * index / n_chunks, starts[g] + n * (index + 1) / n_chunks, index,
                        n_chunks == 1});
    }
  }
  return chunks;
}

bool sum_hard(Attempt& attempt) {
  const Input& input = attempt.input;
  const Sparse& matrix = attempt.matrix;
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_rows = matrix.n_rows, n_columns = matrix.n_columns;
  std::vector<uint32_t> groups(n_rows), rows(n_rows), starts(n_groups + 2);
  if (!kernels.decode_groups(input.groups, 0, n_rows, groups.data())) return false;
  if (input.weights.given()) {
    for (size_t i = 0; i < n_rows; i++) {
      if (input.weights.at(i, 0) == 0.0) groups[i] = static_cast<uint32_t>(n_groups);
    }
  }
  kernels.sort_rows(groups.data(), n_rows, n_groups, starts.data(), rows.data());
  const std::vector<Chunk> chunks = make_chunks(matrix, starts, rows, n_groups);

  const size_t n_log_base = attempt.n_log_base();
  auto make = [&] { return SparseWorker{std::vector<Extent>(batch_rows), Vector(batch_rows), {}, {}, {}}; };
  auto process = [&](SparseWorker& worker, size_t part, Order& order) {
    const Chunk& chunk = chunks[part];
    double* total = attempt.out.total.data() + chunk.group * n_columns;
    double* log_base = attempt.out.log_base.data() + chunk.group * n_log_base;
    double* absent = attempt.with_absent ? attempt.absent.data() + chunk.group * n_columns : nullptr;
    if (!chunk.alone) {
      worker.total.assign(n_columns, 0.0);
      worker.log_base.assign(n_log_base, 0.0);
      worker.absent.assign(attempt.with_absent ? n_columns : 0, 0.0);
    }
    double weight = 0.0;
    SparseRows batch = rows_of(matrix, attempt.kind);
    batch.extents = worker.extents.data();
    batch.weights = input.weights.given() ? worker.weights.data() : nullptr;
    const SparseSums sums{chunk.alone ? total : worker.total.data(), chunk.alone ? log_base : worker.log_base.data(),
                          chunk.alone || !absent ? absent : worker.absent.data()};
    for (size_t start = chunk.begin; start < chunk.end; start += batch_rows) {
      batch.n_rows = std::min(batch_rows, chunk.end - start);
      for (size_t k = 0; k < batch.n_rows; k++) {
        worker.extents[k] = extent_of(matrix, rows[start + k]);
        if (batch.weights) worker.weights[k] = input.weights.at(rows[start + k], 0);
      }
      weight += total_weight(batch.weights, batch.n_rows).high;
      if (!attempt.judge(kernels.sum_sparse(batch, sums))) return false;
    }
    return order.in_turn(chunk.group, chunk.index, [&] {
      attempt.out.row_weight[chunk.group] += weight;
      if (chunk.alone) return;
      for (size_t j = 0; j < n_columns; j++) total[j] += worker.total[j];
      for (size_t j = 0; j < n_log_base; j++) log_base[j] += worker.log_base[j];
      for (size_t j = 0; j < worker.absent.size(); j++) absent[j] += worker.absent[j];
    });
  };
  const size_t threads = choose_threads(input.threads, chunks.size(), 2.0 * static_cast<double>(matrix.n_entries));
  return run_parts(chunks.size(), threads, n_groups, make, process, [](SparseWorker&) {});
}

struct SoftWorker {
  std::vector<Extent> extents;
  Aligned<double> weights, sums;
};

// Soft weights: a few groups at a time, whose sums of a column share one cache line. A part is a slice of the groups
// in a run of rows.
bool sum_soft(Attempt& attempt) {
  const Input& input = attempt.input;
  const Sparse& matrix = attempt.matrix;
  const size_t n_groups = input.groups.n_groups, n_rows = matrix.n_rows, n_columns = matrix.n_columns;
  const size_t n_slices = (n_groups + most_slice - 1) / most_slice;
  const size_t slice = n_slices ? (n_groups + n_slices - 1) / n_slices : 0;
  const size_t pitch = slice > 4 ? 8 : slice > 2 ? 4 : std::max<size_t>(1, slice);
  // A run must be large enough to justify clearing the sums and adding them to the result.
  const size_t n_runs = std::clamp<size_t>(matrix.n_entries / (16 * n_columns + 65536), 1, most_chunks);
  const size_t n_log_base = attempt.n_log_base();
  // Concatenated: totals, log_base, absent, row weights.
  const size_t log_base_at = n_columns * pitch, absent_at = log_base_at + n_log_base * pitch;
  const size_t weight_at = absent_at + (attempt.with_absent ? n_columns * pitch : 0), n_sums = weight_at + pitch;
  Vector results(n_slices * n_sums, 0.0);

  auto make = [&] {
    return SoftWorker{std::vector<Extent>(batch_rows), Aligned<double>(batch_rows * pitch), Aligned<double>(n_sums)};
  };
  auto process = [&](SoftWorker& worker, size_t part, Order& order) {
    const size_t run = part / n_slices, which = part % n_slices;
    const size_t first_group = which * n_groups / n_slices, width = (which + 1) * n_groups / n_slices - first_group;
    double *sums = worker.sums.data(), *weights = worker.weights.data();
    std::fill(sums, sums + n_sums, 0.0);
    SparseRows batch = rows_of(matrix, attempt.kind);
    batch.extents = worker.extents.data();
    batch.weights = weights;
    const size_t last = n_rows * (run + 1) / n_runs;
    for (size_t start = n_rows * run / n_runs; start < last; start += batch_rows) {
      batch.n_rows = 0;
      for (size_t row = start; row < std::min(last, start + batch_rows); row++) {
        double* to = weights + batch.n_rows * pitch;
        bool weighs = false;
        for (size_t g = 0; g < width; g++) {
          to[g] = input.weights.at(row, first_group + g);
          sums[weight_at + g] += to[g];
          weighs |= to[g] != 0.0;
        }
        if (weighs) worker.extents[batch.n_rows++] = extent_of(matrix, row);
      }
      if (!attempt.judge(input.kernels.sum_sparse_soft(batch, pitch, sums, sums + log_base_at,
                                                       attempt.with_absent ? sums + absent_at : nullptr))) {
        return false;
      }
    }
    return order.in_turn(which, run, [&] {
      double* result = results.data() + which * n_sums;
      for (size_t k = 0; k < n_sums; k++) result[k] += sums[k];
    });
  };
  const double cells = static_cast<double>(matrix.n_entries) * static_cast<double>(n_slices);
  const size_t threads = limit_threads(choose_threads(input.threads, n_runs * n_slices, cells), 8 * n_sums);
  if (!run_parts(n_runs * n_slices, threads, n_slices, make, process, [](SoftWorker&) {})) return false;
  for (size_t group = 0; group < n_groups; group++) {
    const size_t which = ((group + 1) * n_slices - 1) / n_groups;
    const double* from = results.data() + which * n_sums + group - which * n_groups / n_slices;
    attempt.out.row_weight[group] = from[weight_at];
    auto take = [&](size_t at, size_t n, Vector& to) {
      for (size_t j = 0; j < n; j++) to[group * n + j] = from[at + j * pitch];
    };
    take(0, n_columns, attempt.out.total);
    take(log_base_at, n_log_base, attempt.out.log_base);
    if (attempt.with_absent) take(absent_at, n_columns, attempt.absent);
  }
  return true;
}

}  // namespace

bool log_bases(const Kernels& kernels, const Sparse& matrix, Kind kind, size_t threads, double* out) {
  if (!valid_extents(matrix)) return false;
  const Grid grid(matrix.n_rows, batch_rows);
  auto process = [&](std::vector<Extent>& extents, size_t part, Order&) {
    SparseRows rows = rows_of(matrix, kind);
    rows.extents = extents.data();
    rows.n_rows = grid.last(part) - grid.first(part);
    for (size_t k = 0; k < rows.n_rows; k++) extents[k] = extent_of(matrix, grid.first(part) + k);
    kernels.log_bases(rows, out + grid.first(part));
    return true;
  };
  const size_t used = choose_threads(threads, grid.n_parts, static_cast<double>(matrix.n_entries));
  return run_parts(grid.n_parts, used, 0, [] { return std::vector<Extent>(batch_rows); }, process,
                   [](std::vector<Extent>&) {});
}

bool sum_sparse(const Input& input, const Sparse& matrix, Kind kind, CountSums& out) {
  if (matrix.n_rows >= UINT32_MAX) throw std::length_error("a sparse matrix may have at most 4294967294 rows");
  const size_t n_groups = input.groups.n_groups, n_columns = matrix.n_columns;
  if (!valid_extents(matrix)) return false;
  Vector absent;
  for (const bool with_absent : {false, true}) {
    out.row_weight.assign(n_groups, 0.0);
    out.total.assign(n_groups * n_columns, 0.0);
    out.log_base.assign(kind == Kind::poisson ? n_groups * n_columns : n_groups, 0.0);
    if (with_absent) absent.assign(n_groups * n_columns, 0.0);
    Attempt attempt{input, matrix, kind, with_absent, out, absent};
    const bool good = input.weights.soft ? sum_soft(attempt) : sum_hard(attempt);
    // The weight of missing cells needs as much memory as the totals, so it is allocated when the first one occurs.
    if (!good && attempt.needs_absent && !with_absent) continue;
    if (!good) return false;
    out.any_missing = with_absent;
    break;
  }
  if (!out.any_missing) return true;
  out.cell_weight.assign(n_groups * n_columns, 0.0);
  for (size_t g = 0; g < n_groups; g++) {
    for (size_t j = 0; j < n_columns; j++) {
      // The rounding error for a column that is missing in every row is set to 0: there are no data.
      const double weight = out.row_weight[g] - absent[g * n_columns + j];
      out.cell_weight[g * n_columns + j] = weight <= 1e-12 * out.row_weight[g] ? 0.0 : weight;
    }
  }
  return true;
}

}  // namespace tallybayes
