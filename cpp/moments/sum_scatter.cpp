// Driver of the sums of outer products. A part is one block of rows. The rows of a group in it are centered near their
// mean, multiplied in float64 (short sums of small numbers are accurate), moved to the anchor and added to the double-
// double sums.
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/group_rows.h"
#include "core/soft_weights.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr double largest_term = 1e300;
constexpr size_t sampled_rows = 64;   // enough for a center within a fraction of the spread
constexpr size_t packed_rows = 192;  // rows that are packed at a time: their panels stay in cache
constexpr size_t soft_rows = 2048;  // rows in a block whose products are stored for all groups
constexpr size_t soft_bytes = 32 << 10;  // of such products at a time
constexpr size_t tested_rows = 128;  // after which the choice of a common center for all groups is checked
constexpr size_t panel_rows = 196;  // stride of panels: not a multiple of 4 KiB, so that they do not share cache sets

struct ScatterWorker {
  BlockRows rows;
  SoftReader reader;
  Vector scratch;  // the block as doubles, unless it is read in place
  Vector packed, packed_weighted;       // panels of centered rows
  Vector product, sum, center;          // of one set
  Vector first_high, first_low, shift_high, shift_low;
  Vector shared_center;  // soft weights: of all groups
  Aligned<double> cells, sums;          // products of some rows, and their sums in every group
  std::vector<uint32_t> weighing;  // rows with a positive weight
};

// Rounds to a power-of-two grid a little finer than the spread: x − center is small, and exact whenever possible.
double grid_center(double mean, double spread) {
  if (!(spread > 0.0) || !std::isfinite(spread)) return mean;
  const double step = std::ldexp(1.0, std::max(std::ilogb(spread) - 2, -1000));
  const double center = std::nearbyint(mean / step) * step;
  return std::isfinite(center) ? center : mean;
}

void choose_center(const RowSet& set, size_t n_columns, double* center) {
  const size_t n = std::min(sampled_rows, set.n_rows);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Vector low(n_columns, infinity), high(n_columns, -infinity), sum(n_columns, 0.0);
  for (size_t k = 0; k < n; k++) {
    const size_t i = k * set.n_rows / n;  // evenly spaced, in case the rows are sorted
    const auto* row =
        reinterpret_cast<const double*>(set.base + static_cast<ptrdiff_t>(set.rows[i]) * set.row_stride);
    for (size_t j = 0; j < n_columns; j++) {
      low[j] = std::min(low[j], row[j]);
      high[j] = std::max(high[j], row[j]);
      sum[j] += row[j] / static_cast<double>(n);
    }
  }
  // The computed mean of equal numbers is rounded, and x − center would be the rounding error.
  for (size_t j = 0; j < n_columns; j++) {
    center[j] = low[j] == high[j] ? low[j] : grid_center(sum[j], high[j] - low[j]);
  }
}

size_t choose_scatter_rows(size_t n_groups, size_t n_columns) {
  // Adding a block to the pairs costs about as much as forty rows, so a group should have some hundred rows in a
  // block; but the block should not be much larger than the cache.
  const size_t wanted = std::clamp<size_t>(1024 * n_groups, 2048, 32768);
  const size_t fitting = std::max<size_t>(512, (size_t{4} << 20) / std::max<size_t>(1, n_columns));
  return std::min(wanted, fitting);
}

// Whether the center is many spreads from the mean, so that digits were lost. (A center that is the nearest double to
// the mean is accurate enough.)
bool off_center(const ScatterWorker& worker, size_t pitch, double weight) {
  for (size_t j = 0; j < worker.sum.size(); j++) {
    const double mean = worker.sum[j] / weight;
    const bool far = worker.sum[j] * mean > 0.999 * worker.product[j * pitch + j];
    if (far && std::abs(mean) > 1e-15 * std::abs(worker.center[j])) return true;
  }
  return false;
}

void move_center(ScatterWorker& worker, double weight) {
  for (size_t j = 0; j < worker.sum.size(); j++) worker.center[j] += worker.sum[j] / weight;
}

// The shift of the sums; false if they are not finite.
bool find_shift(ScatterWorker& worker, size_t pitch, const double* anchor, PairSum weight) {
  for (size_t j = 0; j < worker.sum.size(); j++) {
    PairSum shift{worker.center[j], 0.0};
    shift.add(-anchor[j]);
    worker.shift_high[j] = shift.high;
    worker.shift_low[j] = shift.low;
    PairSum first{worker.sum[j], 0.0};
    const double moved = weight.high * shift.high;
    first.add(moved, std::fma(weight.high, shift.high, -moved) + weight.high * shift.low + weight.low * shift.high);
    worker.first_high[j] = first.high;
    worker.first_low[j] = first.low;
    // NaN, infinity and values that are too far away are all detected here.
    const double about = worker.product[j * pitch + j] + first.high * shift.high + worker.sum[j] * shift.high;
    if (!(about <= largest_term)) return false;
  }
  return true;
}

}  // namespace

bool sum_scatter(const Input& input, const Table& table, const double* anchor, Moments& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, d = table.n_columns;
  out.row_weight.resize(n_groups);
  out.first.resize(n_groups * d);
  out.second.resize(n_groups * d * d);

  const size_t tile = scatter_tile, pitch = (d + tile - 1) / tile * tile;
  const bool in_place = table.row_major() && table.aligned() && table.type == Type::float64;
  const bool shared = input.weights.soft && d <= most_product_columns;
  const size_t wanted_rows = shared ? soft_rows : choose_scatter_rows(n_groups, d);
  const size_t block_rows = std::min(wanted_rows, std::max<size_t>(1, table.n_rows));
  const Grid grid(table.n_rows, block_rows);
  const size_t n_products = d * (d + 1) / 2, cell_pitch = whole_lines(n_products + d + 1);
  const size_t piece_rows = std::clamp<size_t>(soft_bytes / (cell_pitch * sizeof(double)), 8, 64);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(d) * static_cast<double>(d) / 16.0 *
                       (input.weights.soft ? static_cast<double>(n_groups) : 1.0);

  auto make = [&] {
    const size_t panel_cells = pitch * panel_rows;
    return ScatterWorker{BlockRows(kernels, input.groups, input.weights, block_rows),
                         SoftReader(input, table, d, shared ? block_rows : 0),
                         Vector(in_place || shared ? 0 : block_rows * d),
                         Vector(panel_cells),
                         Vector(input.weights.given() ? panel_cells : 0),
                         Vector(pitch * pitch),
                         Vector(d),
                         Vector(d),
                         Vector(d),
                         Vector(d),
                         Vector(d),
                         Vector(d),
                         Vector(d),
                         Aligned<double>(shared ? piece_rows * cell_pitch + 8 : 0),
                         Aligned<double>(shared ? n_groups * cell_pitch : 0),
                         std::vector<uint32_t>(shared ? block_rows : 0)};
  };

  // Float64 sums of one group's rows in the block, about the center.
  auto multiply = [&](ScatterWorker& worker, const RowSet& set) {
    std::fill(worker.product.begin(), worker.product.end(), 0.0);
    std::fill(worker.sum.begin(), worker.sum.end(), 0.0);
    RowSet chunk = set;
    for (size_t start = 0; start < set.n_rows; start += packed_rows) {
      chunk.rows = set.rows + start;
      chunk.n_rows = std::min(packed_rows, set.n_rows - start);
      chunk.weights = set.weights ? set.weights + start : nullptr;
      double* weighted = set.weights ? worker.packed_weighted.data() : nullptr;
      kernels.pack_rows(chunk, d, worker.center.data(), panel_rows, worker.packed.data(), weighted,
                        worker.sum.data());
      kernels.multiply_panels(weighted ? weighted : worker.packed.data(), worker.packed.data(), chunk.n_rows,
                              panel_rows, pitch, worker.product.data());
    }
  };
  // The sums of one group from those of all groups, computed as follows; returns its weight.
  auto take = [&](ScatterWorker& worker, size_t group) {
    const double* from = worker.sums.data() + group * cell_pitch;
    for (size_t i = 0; i < d; i++) {
      for (size_t j = i; j < d; j++) worker.product[i * pitch + j] = *from++;
    }
    std::copy(from, from + d, worker.sum.begin());
    worker.center = worker.shared_center;
    return from[d];
  };
  // Float64 sums of all groups at once, since the products of a row are the same in all of them. Returns false, with
  // only some rows summed, if most groups are too far from a common center: each then needs its own.
  auto multiply_all = [&](ScatterWorker& worker, const SoftRows& rows) {
    RowSet set{rows.base, rows.row_stride, worker.weighing.data(), 0, nullptr, 0};
    for (size_t i = 0; i < rows.n_rows; i++) {
      const double* weights = rows.weights + i * rows.weight_pitch;
      worker.weighing[set.n_rows] = static_cast<uint32_t>(i);
      set.n_rows += std::any_of(weights, weights + n_groups, [](double weight) { return weight != 0.0; });
    }
    choose_center(set, d, worker.shared_center.data());
    std::fill(worker.sums.data(), worker.sums.data() + n_groups * cell_pitch, 0.0);
    bool tested = rows.n_rows <= 2 * tested_rows;
    for (size_t start = 0; start < rows.n_rows; start += piece_rows) {
      const SoftRows piece = worker.reader.part(rows, start, piece_rows);
      kernels.write_product_cells(piece, d, worker.shared_center.data(), worker.cells.data(), cell_pitch);
      kernels.sum_soft(piece.weights, piece.weight_pitch, worker.cells.data(), cell_pitch, piece.n_rows, n_groups,
                       n_products + d + 1, worker.sums.data());
      if (tested || start + piece_rows < tested_rows) continue;
      tested = true;
      size_t n_far = 0;
      for (size_t group = 0; group < n_groups; group++) n_far += off_center(worker, pitch, take(worker, group));
      if (2 * n_far > n_groups) return false;
    }
    return true;
  };

  auto process = [&](ScatterWorker& worker, size_t part, Order& order) {
    const size_t first = grid.first(part), n = grid.last(part) - first;
    if (!worker.rows.prepare(first, n)) return false;
    RowSet set{};
    bool complete = false;
    if (shared) {
      const SoftRows rows = worker.reader.read(first, n);
      complete = multiply_all(worker, rows);
      set.base = rows.base;
      set.row_stride = rows.row_stride;
    } else if (in_place) {
      set.base = table.row(first);
      set.row_stride = table.row_stride;
    } else {
      kernels.load_doubles(table, first, n, worker.scratch.data(), d);
      set.base = reinterpret_cast<Bytes>(worker.scratch.data());
      set.row_stride = static_cast<ptrdiff_t>(d * sizeof(double));
    }
    for (size_t group = 0; group < n_groups; group++) {
      PairSum weight;
      bool done = false, centered = false;
      if (shared) {
        weight.high = take(worker, group);
        done = complete && weight.high == 0.0;
        if (weight.high > 0.0 && find_shift(worker, pitch, anchor, weight)) {
          done = complete && !off_center(worker, pitch, weight.high);
          if (!done) move_center(worker, weight.high);
          centered = true;
        }
      }
      if (!done) {
        const BlockRows::Members members = worker.rows.members_of(group);
        weight = total_weight(members.weights, members.n);
        set.rows = members.rows;
        set.n_rows = members.n;
        set.weights = members.weights;
        if (members.n) {
          if (!centered) choose_center(set, d, worker.center.data());
          multiply(worker, set);
          if (input.weights.soft && off_center(worker, pitch, weight.high)) {
            move_center(worker, weight.high);
            multiply(worker, set);
          }
          if (!find_shift(worker, pitch, anchor, weight)) return false;
        }
      }
      const bool going_on = order.in_turn(group, part, [&] {
        if (weight.high == 0.0) return;
        auto add = [](double& high, double& low, double more_high, double more_low) {
          PairSum sum{high, low};
          sum.add(more_high, more_low);
          high = sum.high;
          low = sum.low;
        };
        add(out.row_weight.high[group], out.row_weight.low[group], weight.high, weight.low);
        for (size_t j = 0; j < d; j++) {
          add(out.first.high[group * d + j], out.first.low[group * d + j], worker.first_high[j], worker.first_low[j]);
        }
        const ScatterBlock block{d, pitch, worker.product.data(), worker.sum.data(), worker.first_high.data(),
                                 worker.first_low.data(), worker.shift_high.data(), worker.shift_low.data()};
        kernels.add_scatter(block, out.second.high.data() + group * d * d, out.second.low.data() + group * d * d);
      });
      if (!going_on) return false;
    }
    return true;
  };

  const size_t threads = choose_threads(input.threads, grid.n_parts, cells);
  if (!run_parts(grid.n_parts, threads, n_groups, make, process, [](ScatterWorker&) {})) return false;
  for (size_t g = 0; g < n_groups; g++) {
    for (Vector* half : {&out.second.high, &out.second.low}) {
      double* matrix = half->data() + g * d * d;
      for (size_t i = 0; i < d; i++) {
        for (size_t j = 0; j < i; j++) matrix[i * d + j] = matrix[j * d + i];
      }
    }
  }
  return true;
}

}  // namespace tallybayes
