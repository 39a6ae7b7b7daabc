// Driver of the double-double sums: blocks of rows, sorted by group, in parts that are merged in order.
#include "core/parallel.h"
#include "core/group_rows.h"
#include "core/soft_weights.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

// Small enough that this block and the next one, which is prefetched, share the second-level cache.
constexpr size_t block_bytes = 160 << 10;
// The vector code needs at least one whole vector of columns.
constexpr size_t least_width = 8;
// Rows with soft weights: float64 sums of few rows are accurate, and adding them to the pairs is still cheap. Rows are
// read once for every group, in pieces that stay in the first-level cache.
constexpr size_t soft_rows = 512;
constexpr size_t soft_bytes = 16 << 10;

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

void merge_weights(PairVector& out, const std::vector<PairSum>& more) {
  for (size_t g = 0; g < more.size(); g++) {
    PairSum sum{out.high[g], out.low[g]};
    sum.add(more[g].high, more[g].low);
    out.high[g] = sum.high;
    out.low[g] = sum.low;
  }
}

// The double-double sums of one group, from arrays of all groups.
MomentSums sums_of(Vector& sums, size_t n_sums, size_t offset) {
  double* at = sums.data() + offset;
  return {at, at + n_sums, at + 2 * n_sums, at + 3 * n_sums, at + 4 * n_sums, at + 5 * n_sums};
}

void merge_sums(Moments& out, size_t n_groups, size_t n_columns, const Vector& sums, size_t width) {
  PairVector* targets[] = {&out.cell_weight, &out.first, &out.second};
  const size_t n_sums = n_groups * width;
  for (size_t k = 0; k < 3; k++) {
    merge_pairs(*targets[k], n_groups, n_columns, sums.data() + 2 * k * n_sums, sums.data() + (2 * k + 1) * n_sums,
                width);
  }
}

struct SoftWorker {
  SoftReader reader;
  BlockRows rows;
  Vector sums, plain;  // the double-double sums; centers and float64 sums of every group
  std::vector<PairSum> row_weight;
  bool any_missing = false;
};

bool sum_soft_moments(const Input& input, const Table& table, const Vector& anchors, Moments& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns, width = anchors.size();
  const size_t n_sums = n_groups * width, row_bytes = width * sizeof(double);
  const size_t block_rows = std::min(std::clamp<size_t>((256 << 10) / row_bytes, 64, soft_rows), table.n_rows + 1);
  const size_t piece_rows = std::clamp<size_t>(soft_bytes / row_bytes, 8, block_rows);
  const Grid grid = make_grid(table.n_rows, width, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(n_sums) / 4.0;

  auto make = [&] {
    return SoftWorker{SoftReader(input, table, width, block_rows),
                      BlockRows(kernels, input.groups, input.weights, block_rows), Vector(6 * n_sums),
                      Vector(5 * n_sums), std::vector<PairSum>(n_groups)};
  };
  auto plain_of = [&](SoftWorker& worker, size_t group) {
    double* at = worker.plain.data() + group * 5 * width;
    return PlainSums{at, at + width, at + 2 * width, at + 3 * width, at + 4 * width};
  };
  auto clear = [&](const PlainSums& plain) { std::fill(plain.weight, plain.second + width, 0.0); };

  // Repeats one group of a block.
  auto sum_again = [&](SoftWorker& worker, const SoftRows& rows, size_t group, bool careful) {
    const PlainSums plain = plain_of(worker, group);
    clear(plain);
    worker.any_missing |= kernels.sum_plain_moments(rows, group, width, careful, plain);
    return kernels.judge_plain_moments(plain, width, anchors.data());
  };
  // Sums every value with its own rounding error, as for hard groups; false if a value is out of range.
  auto sum_exactly = [&](SoftWorker& worker, const SoftRows& rows, size_t group) {
    const BlockRows::Members members = worker.rows.members_of(group);
    const RowSet set{rows.base, rows.row_stride, members.rows, members.n, members.weights, 0};
    const PairSum weight = total_weight(members.weights, members.n);
    worker.row_weight[group].add(weight.high, weight.low);
    const Outcome outcome = kernels.sum_moments(set, width, anchors.data(), weight.high, weight.low, true,
                                                sums_of(worker.sums, n_sums, group * width));
    worker.any_missing |= outcome == Outcome::missing;
    return outcome != Outcome::bad;
  };

  auto process = [&](SoftWorker& worker, size_t part, Order& order) {
    std::fill(worker.sums.begin(), worker.sums.end(), 0.0);
    std::fill(worker.row_weight.begin(), worker.row_weight.end(), PairSum());
    for (size_t g = 0; g < n_groups; g++) {
      std::copy(anchors.begin(), anchors.end(), plain_of(worker, g).center);
      std::fill_n(plain_of(worker, g).spread, width, 0.0);
    }
    const size_t last = grid.last(part);
    bool careful = false;  // after one missing cell in a part, more are expected
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t n = std::min(block_rows, last - first);
      const SoftRows rows = worker.reader.read(first, n);
      const bool optimistic = !careful;
      for (size_t g = 0; g < n_groups; g++) clear(plain_of(worker, g));
      for (size_t start = 0; start < n; start += piece_rows) {
        SoftRows piece = worker.reader.part(rows, start, piece_rows);
        for (size_t g = 0; g < n_groups; g++) {
          worker.any_missing |= kernels.sum_plain_moments(piece, g, width, careful, plain_of(worker, g));
          piece.lookahead = 0;  // already prefetched
        }
      }
      for (size_t g = 0; g < n_groups; g++) {
        const PlainSums plain = plain_of(worker, g);
        Fit fit = kernels.judge_plain_moments(plain, width, anchors.data());
        if (fit == Fit::bad && optimistic) {
          fit = sum_again(worker, rows, g, true);
          careful |= fit != Fit::bad;
        }
        if (fit == Fit::far) {
          kernels.move_center(plain, width);
          fit = sum_again(worker, rows, g, careful);
        }
        if (fit == Fit::bad) {
          worker.rows.prepare(first, n);
          if (!sum_exactly(worker, rows, g)) return false;
          continue;
        }
        worker.row_weight[g].add(plain.weight[0]);
        kernels.add_plain_moments(plain, width, anchors.data(), sums_of(worker.sums, n_sums, g * width));
        kernels.move_center(plain, width);  // consecutive blocks are usually similar
      }
    }
    return order.in_turn(0, part, [&] {
      merge_weights(out.row_weight, worker.row_weight);
      merge_sums(out, n_groups, n_columns, worker.sums, width);
    });
  };
  auto finish = [&](SoftWorker& worker) { out.any_missing |= worker.any_missing; };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), 88 * n_sums);
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
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
  if (input.weights.soft) return sum_soft_moments(input, table, anchors, out);
  const bool in_place =
      table.row_major() && table.aligned() && table.type == Type::float64 && n_columns >= least_width;
  const size_t block_rows =
      std::min(choose_block_rows(width * sizeof(double), n_groups, block_bytes), table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, width, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(width);

  auto make = [&] {
    return MomentWorker{BlockRows(kernels, input.groups, input.weights, block_rows),
                        Vector(in_place ? 0 : block_rows * width), Vector(6 * n_sums),
                        std::vector<PairSum>(n_groups)};
  };
  auto process = [&](MomentWorker& worker, size_t part, Order& order) {
    std::fill(worker.sums.begin(), worker.sums.end(), 0.0);
    std::fill(worker.row_weight.begin(), worker.row_weight.end(), PairSum());
    const size_t last = grid.last(part);
    bool careful = false;  // after one missing cell in a part, more are expected
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
        const Outcome outcome = kernels.sum_moments(set, width, anchors.data(), weight.high, weight.low, careful,
                                                    sums_of(worker.sums, n_sums, group * width));
        careful |= outcome == Outcome::missing;
        worker.any_missing |= careful;
        return outcome != Outcome::bad;
      });
      if (!good) return false;
    }
    return order.in_turn(0, part, [&] {
      merge_weights(out.row_weight, worker.row_weight);
      merge_sums(out, n_groups, n_columns, worker.sums, width);
    });
  };
  auto finish = [&](MomentWorker& worker) { out.any_missing |= worker.any_missing; };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), 48 * n_sums);
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

}  // namespace tallybayes
