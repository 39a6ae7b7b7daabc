// Drives the double-double sums: blocks of rows, sorted by group, in parts that are merged in order.
#include "parallel.h"
#include "rows.h"
#include "sums.h"

namespace tallybayes {

namespace {

// Small enough that this block and the next, which is prefetched meanwhile, share the second-level cache.
constexpr size_t block_bytes = 160 << 10;
// The vector code wants at least one whole vector of columns.
constexpr size_t least_width = 8;

struct MomentWorker {
  BlockRows rows;
  Vector scratch, sums;
  std::vector<PairSum> row_weight;
  bool any_missing = false;
};

void merge_pairs(PairVector& out, size_t n_groups, size_t n_columns, const double* high, const double* low,
                 size_t width) {
  for (size_t g = 0; g < n_groups; g++) {
    for (size_t j = 0; j < n_columns; j++) {
      PairSum sum{out.high[g * n_columns + j], out.low[g * n_columns + j]};
      sum.add(high[g * width + j], low[g * width + j]);
      out.high[g * n_columns + j] = sum.high;
      out.low[g * n_columns + j] = sum.low;
    }
  }
}

}  // namespace

bool sum_moments(const Input& input, const Table& table, const double* anchor, Moments& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns;
  out.row_weight.resize(n_groups);
  out.cell_weight.resize(n_groups * n_columns);
  out.first.resize(n_groups * n_columns);
  out.second.resize(n_groups * n_columns);

  const size_t width = std::max(n_columns, least_width), n_sums = n_groups * width;
  Vector anchors(width, 0.0);
  std::copy(anchor, anchor + n_columns, anchors.begin());
  const bool in_place =
      table.row_major() && table.aligned() && table.type == Type::float64 && n_columns >= least_width;
  const size_t block_rows =
      std::min(choose_block_rows(width * sizeof(double), n_groups, block_bytes), table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, width, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(width) *
                       (input.weights.soft ? static_cast<double>(n_groups) : 1.0);

  auto make = [&] {
    return MomentWorker{BlockRows(kernels, input.groups, input.weights, block_rows),
                        Vector(in_place ? 0 : block_rows * width), Vector(6 * n_sums),
                        std::vector<PairSum>(n_groups)};
  };
  auto sums_at = [&](MomentWorker& worker, size_t which) { return worker.sums.data() + which * n_sums; };
  auto process = [&](MomentWorker& worker, size_t part, Order& order) {
    std::fill(worker.sums.begin(), worker.sums.end(), 0.0);
    std::fill(worker.row_weight.begin(), worker.row_weight.end(), PairSum());
    const size_t last = grid.last(part);
    bool careful = false;  // once a cell of the part was missing, more will be
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t n = std::min(block_rows, last - first);
      if (!worker.rows.prepare(first, n)) return false;
      RowSet set{};
      if (in_place) {
        set.base = table.row(first);
        set.row_stride = table.row_stride;
        set.lookahead = static_cast<ptrdiff_t>(block_rows) * table.row_stride;
      } else {
        kernels.load_doubles(table, first, n, worker.scratch.data(), width);
        set.base = reinterpret_cast<Bytes>(worker.scratch.data());
        set.row_stride = static_cast<ptrdiff_t>(width * sizeof(double));
      }
      const bool good = worker.rows.each([&](size_t group, const uint32_t* rows, size_t n_set, const double* weights) {
        set.rows = rows;
        set.n_rows = n_set;
        set.weights = weights;
        const PairSum weight = total_weight(weights, n_set);
        worker.row_weight[group].add(weight.high, weight.low);
        MomentSums sums{};
        double** members[] = {&sums.weight_high, &sums.weight_low,  &sums.first_high,
                              &sums.first_low,   &sums.second_high, &sums.second_low};
        for (size_t k = 0; k < 6; k++) *members[k] = sums_at(worker, k) + group * width;
        const Outcome outcome = kernels.sum_moments(set, width, anchors.data(), weight.high, weight.low, careful, sums);
        careful |= outcome == Outcome::missing;
        worker.any_missing |= careful;
        return outcome != Outcome::bad;
      });
      if (!good) return false;
    }
    return order.in_turn(0, part, [&] {
      for (size_t g = 0; g < n_groups; g++) {
        PairSum sum{out.row_weight.high[g], out.row_weight.low[g]};
        sum.add(worker.row_weight[g].high, worker.row_weight[g].low);
        out.row_weight.high[g] = sum.high;
        out.row_weight.low[g] = sum.low;
      }
      PairVector* targets[] = {&out.cell_weight, &out.first, &out.second};
      for (size_t k = 0; k < 3; k++) {
        merge_pairs(*targets[k], n_groups, n_columns, sums_at(worker, 2 * k), sums_at(worker, 2 * k + 1), width);
      }
    });
  };
  auto finish = [&](MomentWorker& worker) { out.any_missing |= worker.any_missing; };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), 48 * n_sums);
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

}  // namespace tallybayes
