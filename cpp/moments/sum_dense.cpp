// Driver of the sums of binary, Poisson and multinomial cells over dense rows.
#include "core/parallel.h"
#include "core/group_rows.h"
#include "core/soft_weights.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t block_bytes = 160 << 10;
constexpr size_t least_width = 8;         // one whole vector of doubles
constexpr size_t least_byte_width = 64;   // one whole vector of bytes
constexpr size_t soft_rows = 512;  // summed before they are added to the sums of the part
constexpr size_t soft_bytes = 16 << 10;  // of cells: they are read once for several groups
constexpr size_t most_byte_rows = 255;  // the sum of this many ones fits into a byte

bool all_bytes(const Table& table) {
  for (size_t j = 0; j < (table.separate ? table.n_columns : 1); j++) {
    const Type type = table.separate ? table.columns[j].type : table.type;
    if (size_of(type) != 1) return false;
  }
  return true;
}

void prepare(CountSums& out, size_t n_groups, size_t n_columns, Kind kind) {
  out.row_weight.assign(n_groups, 0.0);
  out.cell_weight.assign(n_groups * n_columns, 0.0);
  out.total.assign(n_groups * n_columns, 0.0);
  out.log_base.assign(kind == Kind::poisson ? n_groups * n_columns : n_groups, 0.0);
}

struct ByteWorker {
  BlockRows rows;
  std::vector<uint8_t> scratch;
  std::vector<uint32_t> total;
  std::vector<uint64_t> n_rows;
};

// Unweighted 0/1 bytes: summed as bytes, 64 columns per instruction. No cell can be missing.
bool sum_bytes(const Input& input, const Table& table, CountSums& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns;
  const size_t width = std::max(n_columns, least_byte_width);
  const bool in_place = table.row_major() && n_columns >= least_byte_width;
  const size_t block_rows = std::min(choose_block_rows(width, n_groups, block_bytes), table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, width / 4, block_rows, n_groups * width / 4);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(width) / 8.0;

  auto make = [&] {
    return ByteWorker{BlockRows(kernels, input.groups, input.weights, block_rows),
                      std::vector<uint8_t>(in_place ? 0 : block_rows * width),
                      std::vector<uint32_t>(n_groups * width), std::vector<uint64_t>(n_groups)};
  };
  auto process = [&](ByteWorker& worker, size_t part, Order& order) {
    std::fill(worker.total.begin(), worker.total.end(), 0);
    std::fill(worker.n_rows.begin(), worker.n_rows.end(), 0);
    const size_t last = grid.last(part);
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t n = std::min(block_rows, last - first);
      if (!worker.rows.prepare(first, n)) return false;
      RowSet set{};
      if (in_place) {
        set.base = table.row(first);
        set.row_stride = table.row_stride;
        set.lookahead = static_cast<ptrdiff_t>(block_rows) * table.row_stride;
      } else {
        kernels.load_bytes(table, first, n, worker.scratch.data(), width);
        set.base = worker.scratch.data();
        set.row_stride = static_cast<ptrdiff_t>(width);
      }
      const bool good = worker.rows.each([&](size_t group, const uint32_t* rows, size_t n_set, const double*) {
        worker.n_rows[group] += n_set;
        for (size_t start = 0; start < n_set; start += most_byte_rows) {
          set.rows = rows + start;
          set.n_rows = std::min(most_byte_rows, n_set - start);
          if (!kernels.sum_binary_bytes(set, width, worker.total.data() + group * width)) return false;
        }
        return true;
      });
      if (!good) return false;
    }
    return order.in_turn(0, part, [&] {
      for (size_t g = 0; g < n_groups; g++) {
        out.row_weight[g] += static_cast<double>(worker.n_rows[g]);
        for (size_t j = 0; j < n_columns; j++) out.total[g * n_columns + j] += worker.total[g * width + j];
      }
    });
  };
  const size_t threads = choose_threads(input.threads, grid.n_parts, cells);
  return run_parts(grid.n_parts, threads, 1, make, process, [](ByteWorker&) {});
}

struct DenseWorker {
  BlockRows rows;
  Vector scratch, row_weight, cell_weight, total, log_base, terms;
  bool any_missing = false;
};

// Adds the sums of a part, whose columns have the stride `width`, to the result.
void merge_part(CountSums& out, Kind kind, size_t n_groups, size_t n_columns, size_t width, const Vector& row_weight,
                const Vector& cell_weight, const Vector& total, const Vector& log_base) {
  for (size_t g = 0; g < n_groups; g++) {
    out.row_weight[g] += row_weight[g];
    for (size_t j = 0; j < n_columns; j++) {
      out.cell_weight[g * n_columns + j] += cell_weight[g * width + j];
      out.total[g * n_columns + j] += total[g * width + j];
      if (kind == Kind::poisson) out.log_base[g * n_columns + j] += log_base[g * width + j];
    }
    if (kind == Kind::multinomial) out.log_base[g] += log_base[g];
  }
}

struct SoftWorker {
  SoftReader reader;
  Aligned<double> cells, sums;
  Vector row_weight, cell_weight, total, log_base;
  bool any_missing = false;
};

bool sum_soft_dense(const Input& input, const Table& table, Kind kind, CountSums& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, d = table.n_columns;
  const bool poisson = kind == Kind::poisson, multinomial = kind == Kind::multinomial;
  const size_t logs = whole_lines(d + 1), present = poisson ? whole_lines(logs + d) : logs;
  const size_t pitch = whole_lines(multinomial ? d + 2 : present + d + 1);
  const size_t block_rows = std::min(soft_rows, table.n_rows + 1);
  const size_t piece_rows = std::clamp<size_t>(soft_bytes / (pitch * sizeof(double)), 4, 64);
  const Grid grid = make_grid(table.n_rows, pitch, block_rows, n_groups * pitch);
  const double work = static_cast<double>(table.n_rows) * static_cast<double>((n_groups + 4) * d) / 4.0;

  auto make = [&] {
    return SoftWorker{SoftReader(input, table, std::max(d, least_width), piece_rows),
                      Aligned<double>(piece_rows * pitch),
                      Aligned<double>(n_groups * pitch),
                      Vector(n_groups),
                      Vector(n_groups * d),
                      Vector(n_groups * d),
                      Vector(poisson ? n_groups * d : n_groups)};
  };
  auto flush = [&](SoftWorker& worker) {
    for (size_t g = 0; g < n_groups; g++) {
      double* sums = worker.sums.data() + g * pitch;
      const double complete = sums[d];  // the weight of rows in pieces without missing cells
      worker.row_weight[g] += complete + (multinomial ? 0.0 : sums[present + d]);
      for (size_t j = 0; j < d; j++) {
        worker.total[g * d + j] += sums[j];
        if (!multinomial) worker.cell_weight[g * d + j] += complete + sums[present + j];
        if (poisson) worker.log_base[g * d + j] += sums[logs + j];
      }
      if (multinomial) worker.log_base[g] += sums[d + 1];
      std::fill(sums, sums + pitch, 0.0);
    }
  };
  auto process = [&](SoftWorker& worker, size_t part, Order& order) {
    for (Vector* sums : {&worker.row_weight, &worker.cell_weight, &worker.total, &worker.log_base}) {
      std::fill(sums->begin(), sums->end(), 0.0);
    }
    const size_t last = grid.last(part);
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t end = std::min(first + block_rows, last);
      for (size_t start = first; start < end; start += piece_rows) {
        const size_t n = std::min(piece_rows, end - start);
        const SoftRows rows = worker.reader.part(worker.reader.read(start, n), 0, n);
        const SoftOutcome written =
            kernels.write_dense_cells(rows, kind, d, n_groups, {worker.cells.data(), pitch, logs, present});
        if (written.outcome == Outcome::bad) return false;
        worker.any_missing |= written.outcome == Outcome::missing;
        kernels.sum_soft(rows.weights, rows.weight_pitch, worker.cells.data(), pitch, n, n_groups, written.width,
                         worker.sums.data());
      }
      flush(worker);
    }
    return order.in_turn(0, part, [&] {
      merge_part(out, kind, n_groups, d, d, worker.row_weight, worker.cell_weight, worker.total, worker.log_base);
    });
  };
  auto finish = [&](SoftWorker& worker) { out.any_missing |= worker.any_missing; };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, work), 8 * n_groups * (2 * pitch));
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

}  // namespace

bool sum_dense(const Input& input, const Table& table, Kind kind, CountSums& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns;
  prepare(out, n_groups, n_columns, kind);
  if (kind == Kind::binary && !input.weights.given() && n_columns && all_bytes(table)) {
    return sum_bytes(input, table, out);
  }
  if (input.weights.soft) return sum_soft_dense(input, table, kind, out);

  const size_t width = std::max(n_columns, least_width);
  const bool in_place =
      table.row_major() && table.aligned() && table.type == Type::float64 && n_columns >= least_width;
  const size_t block_rows =
      std::min(choose_block_rows(width * sizeof(double), n_groups, block_bytes), table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, width, block_rows, n_groups * width);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(width);
  const bool multinomial = kind == Kind::multinomial;
  const size_t n_log_base = kind == Kind::poisson ? n_groups * width : n_groups;

  auto make = [&] {
    return DenseWorker{BlockRows(kernels, input.groups, input.weights, block_rows),
                       Vector(in_place ? 0 : block_rows * width),
                       Vector(n_groups),
                       Vector(n_groups * width),
                       Vector(n_groups * width),
                       Vector(n_log_base),
                       Vector(multinomial ? block_rows : 0)};
  };
  auto process = [&](DenseWorker& worker, size_t part, Order& order) {
    for (Vector* sums : {&worker.row_weight, &worker.cell_weight, &worker.total, &worker.log_base}) {
      std::fill(sums->begin(), sums->end(), 0.0);
    }
    const size_t last = grid.last(part);
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
      if (multinomial) kernels.multinomial_terms(set.base, set.row_stride, n, n_columns, worker.terms.data());
      const bool good = worker.rows.each([&](size_t group, const uint32_t* rows, size_t n_set, const double* weights) {
        set.rows = rows;
        set.n_rows = n_set;
        set.weights = weights;
        const double weight = total_weight(weights, n_set).high;
        worker.row_weight[group] += weight;
        const DenseSums sums{worker.cell_weight.data() + group * width, worker.total.data() + group * width,
                             kind == Kind::poisson ? worker.log_base.data() + group * width : nullptr};
        const Outcome outcome = kernels.sum_dense(set, kind, width, weight, sums);
        if (multinomial) {
          for (size_t k = 0; k < n_set; k++) {
            worker.log_base[group] += (weights ? weights[k] : 1.0) * worker.terms[rows[k]];
          }
        }
        worker.any_missing |= outcome == Outcome::missing;
        return outcome != Outcome::bad;
      });
      if (!good) return false;
    }
    return order.in_turn(0, part, [&] {
      merge_part(out, kind, n_groups, n_columns, width, worker.row_weight, worker.cell_weight, worker.total,
                 worker.log_base);
    });
  };
  auto finish = [&](DenseWorker& worker) { out.any_missing |= worker.any_missing; };
  const size_t threads =
      limit_threads(choose_threads(input.threads, grid.n_parts, cells), 8 * (2 * n_groups * width + n_log_base));
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

}  // namespace tallybayes
