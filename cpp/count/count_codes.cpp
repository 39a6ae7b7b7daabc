// Driver of the counts of codes. Unweighted counts are integers, so threads may add them in any order; weighted sums
// are merged in the order of the parts.
#include "core/parallel.h"
#include "core/group_rows.h"
#include "core/soft_weights.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t column_chunk = 256;  // columns processed at a time, to bound the scratch memory
constexpr size_t most_pair_keys = 8192;  // larger joint tables do not fit into the first-level cache
constexpr size_t word_rows = 512;        // rows in eight words of bits

// The scratch memory of a block should stay in cache; so should the block itself if columns are read one by one from
// rows.
size_t choose_code_rows(const Table& table, const int64_t* sizes) {
  size_t row_bytes = 0;
  for (size_t j = 0; j < std::min(column_chunk, table.n_columns); j++) {
    const bool narrow = sizes[j] <= static_cast<int64_t>(most_narrow_levels);
    row_bytes += narrow ? 1 : 4 + size_of(table.column(j).type);
  }
  const size_t rows = std::clamp<size_t>((size_t{192} << 10) / std::max<size_t>(1, row_bytes), word_rows, 4096);
  const size_t needed = (table.n_rows / word_rows + 1) * word_rows;
  return std::min(rows / word_rows * word_rows, needed);
}

Table columns_of(const Table& table, size_t first, size_t n) {
  Table part = table;
  part.n_columns = n;
  if (table.separate) {
    part.columns += first;
  } else {
    part.data += static_cast<ptrdiff_t>(first) * table.column_stride;
  }
  return part;
}

enum class Way { masks, pair, pair_second, single };

struct ColumnPlan {
  Way way = Way::single;
  uint32_t size = 0;  // levels that this type can represent
  size_t offset = 0;    // of the first level in a row of the result
  size_t counters = 0;  // of the first counter of this column
  bool narrow = false;  // few enough levels for bytes
};

// The method of every column, and the number of counters.
struct CountPlan {
  std::vector<ColumnPlan> columns;
  size_t n_levels = 0, n_masks = 0, n_counters = 0;
  bool any_masks = false;
};

CountPlan make_plan(const Kernels& kernels, const Table& table, const int64_t* sizes, size_t n_groups) {
  CountPlan plan;
  plan.columns.resize(table.n_columns);
  size_t waiting = table.n_columns;  // a byte column without a partner
  auto settle = [&](size_t j) {
    plan.columns[j].way = Way::single;
    plan.columns[j].counters = plan.n_counters;
    plan.n_counters += (n_groups + 1) * (static_cast<size_t>(plan.columns[j].size) + 1);
  };
  for (size_t j = 0; j < table.n_columns; j++) {
    ColumnPlan& column = plan.columns[j];
    const size_t size = static_cast<size_t>(sizes[j]);
    column.offset = plan.n_levels;
    plan.n_levels += size;
    column.size = static_cast<uint32_t>(code_limit(table.column(j).type, size));
    if (j % column_chunk == 0 && waiting < table.n_columns) {
      settle(waiting);
      waiting = table.n_columns;
    }
    column.narrow = size <= most_narrow_levels;
    if (!column.narrow) {
      settle(j);
    } else if (kernels.count_masks && n_groups <= 64 && column.size < 64 && column.size * (2 + n_groups) <= 110) {
      // Benchmarked: a level costs about 1 + groups / 2 cycles for 64 rows, a histogram about 50.
      column.way = Way::masks;
      column.counters = plan.n_masks;
      plan.n_masks += 8 * n_groups * column.size;
      plan.any_masks = true;
    } else if (waiting == table.n_columns) {
      waiting = j;
    } else {
      const size_t keys = (n_groups + 1) * (plan.columns[waiting].size + 1) * (column.size + 1);
      if (keys <= most_pair_keys) {
        plan.columns[waiting].way = Way::pair;
        plan.columns[waiting].counters = plan.n_counters;
        column.way = Way::pair_second;
        column.counters = waiting;
        plan.n_counters += 2 * keys;
        waiting = table.n_columns;
      } else {
        settle(waiting);
        waiting = j;
      }
    }
  }
  if (waiting < table.n_columns) settle(waiting);
  return plan;
}

class Counter {
 public:
  Counter(const Input& input, const Table& table, const CountPlan& plan, size_t block_rows)
      : kernels_(input.kernels), input_(input), table_(table), plan_(plan), block_rows_(block_rows),
        counters_(plan.n_counters), masks_(plan.n_masks), groups_(block_rows), codes_(block_rows),
        present_(block_rows), narrow_(block_rows * std::min(column_chunk, table.n_columns)),
        group_keys_(block_rows),
        group_masks_(plan.any_masks ? (input.groups.n_groups + 1) * (block_rows / 64) : 0),
        result(input.groups.n_groups * plan.n_levels) {}

  bool count_rows(size_t first, size_t last) {
    // At least once, since the group codes are validated even if there is no column.
    for (size_t chunk = 0; chunk == 0 || chunk < table_.n_columns; chunk += column_chunk) {
      const size_t n_columns = std::min(column_chunk, table_.n_columns - chunk);
      for (size_t start = first; start < last; start += block_rows_) {
        if (!count_block(start, std::min(block_rows_, last - start), chunk, n_columns)) return false;
      }
    }
    fold();
    return true;
  }

 private:
  bool count_block(size_t first, size_t n, size_t chunk, size_t n_columns) {
    const size_t n_groups = input_.groups.n_groups;
    if (!kernels_.decode_groups(input_.groups, first, n, groups_.data())) return false;
    for (size_t i = 0; i < n; i++) present_[i] = groups_[i] < n_groups;
    const size_t n_words = (n + word_rows - 1) / word_rows * (word_rows / 64);
    if (plan_.any_masks) kernels_.group_masks(groups_.data(), n, n_groups, group_masks_.data(), n_words);
    keys_for_ = 0;
    const Table columns = columns_of(table_, chunk, n_columns);
    const bool together = columns.row_major() && n_columns > 1;
    if (together) kernels_.load_narrow_codes(columns, first, n, narrow_.data(), block_rows_);
    const uint8_t* partner = nullptr;
    for (size_t j = 0; j < n_columns; j++) {
      const ColumnPlan& plan = plan_.columns[chunk + j];
      const Column column = columns.column(j);
      if (plan.way == Way::single) {
        const bool narrowed = together && plan.narrow;
        const Column source = narrowed ? Column{narrow_.data() + j * block_rows_, 1, Type::uint8} : column;
        const size_t start = narrowed ? 0 : first;
        if (!kernels_.load_codes(source, start, n, plan.size, present_.data(), codes_.data())) return false;
        kernels_.count_single(codes_.data(), groups_.data(), n, plan.size, counters_.data() + plan.counters);
        continue;
      }
      const uint8_t* codes = narrow_.data() + j * block_rows_;
      ptrdiff_t lookahead = 0;
      if (!together) {
        // A full block of byte codes is read in place; the last one is copied, because whole words are read.
        if (size_of(column.type) == 1 && column.contiguous() && n == n_words * 64) {
          codes = column.at(first);
          if (j + 1 < n_columns) lookahead = columns.column(j + 1).at(first) - codes;
        } else {
          uint8_t* target = narrow_.data() + j * block_rows_;
          kernels_.load_narrow_codes(columns_of(columns, j, 1), first, n, target, block_rows_);
        }
      }
      if (plan.way == Way::masks) {
        if (!kernels_.count_masks(codes, lookahead, n_words, group_masks_.data(), n_groups, plan.size,
                                  masks_.data() + plan.counters)) {
          return false;
        }
        continue;
      }
      if (kernels_.has_bad_bytes(codes, present_.data(), n, static_cast<uint8_t>(plan.size))) return false;
      if (plan.way == Way::pair) {
        partner = codes;
      } else {
        count_pair(plan_.columns[plan.counters], plan, partner, codes, n);
      }
    }
    return true;
  }

  void count_pair(const ColumnPlan& a, const ColumnPlan& b, const uint8_t* codes_a, const uint8_t* codes_b, size_t n) {
    const size_t cells = static_cast<size_t>(a.size + 1) * (b.size + 1);
    if (keys_for_ != cells) {
      for (size_t i = 0; i < n; i++) group_keys_[i] = static_cast<uint16_t>(groups_[i] * cells);
      keys_for_ = cells;
    }
    kernels_.count_pairs(codes_a, codes_b, n, static_cast<uint8_t>(a.size), static_cast<uint8_t>(b.size),
                         group_keys_.data(), counters_.data() + a.counters, (input_.groups.n_groups + 1) * cells);
  }

  // Adds the counters to the result and resets them: 32 bits are enough for a part.
  void fold() {
    const size_t n_groups = input_.groups.n_groups;
    for (const ColumnPlan& column : plan_.columns) {
      auto at = [&](const ColumnPlan& which, size_t g, size_t level) -> double& {
        return result[g * plan_.n_levels + which.offset + level];
      };
      if (column.way == Way::single) {
        const size_t step = static_cast<size_t>(column.size) + 1;
        for (size_t g = 0; g < n_groups; g++) {
          for (size_t k = 0; k < column.size; k++) at(column, g, k) += counters_[column.counters + g * step + k];
        }
      } else if (column.way == Way::masks) {
        for (size_t k = 0; k < column.size; k++) {
          for (size_t g = 0; g < n_groups; g++) {
            const uint64_t* lane = masks_.data() + column.counters + (k * n_groups + g) * 8;
            at(column, g, k) += static_cast<double>(std::accumulate(lane, lane + 8, uint64_t{0}));
          }
        }
      } else if (column.way == Way::pair_second) {
        const ColumnPlan& partner = plan_.columns[column.counters];
        const size_t rows = partner.size + 1, step = column.size + 1, keys = (n_groups + 1) * rows * step;
        for (size_t g = 0; g < n_groups; g++) {
          for (size_t a = 0; a < rows; a++) {
            for (size_t b = 0; b < step; b++) {
              const uint32_t* counter = counters_.data() + partner.counters + (g * rows + a) * step + b;
              const double count = static_cast<double>(uint64_t{counter[0]} + counter[keys]);
              if (a < partner.size) at(partner, g, a) += count;
              if (b < column.size) at(column, g, b) += count;
            }
          }
        }
      }
    }
    std::fill(counters_.begin(), counters_.end(), 0);
    std::fill(masks_.begin(), masks_.end(), 0);
  }

  const Kernels& kernels_;
  const Input& input_;
  const Table& table_;
  const CountPlan& plan_;
  size_t block_rows_, keys_for_ = 0;
  std::vector<uint32_t> counters_;
  std::vector<uint64_t> masks_;
  std::vector<uint32_t> groups_, codes_;
  std::vector<uint8_t> present_, narrow_;
  std::vector<uint16_t> group_keys_;
  std::vector<uint64_t> group_masks_;

 public:
  Vector result;  // n_groups × n_levels
};

bool count_unweighted(const Input& input, const Table& table, const int64_t* sizes, Vector& out) {
  const CountPlan plan = make_plan(input.kernels, table, sizes, input.groups.n_groups);
  const size_t block_rows = choose_code_rows(table, sizes);
  const size_t n_sums = plan.n_counters + plan.n_masks;
  const Grid grid = make_grid(table.n_rows, table.n_columns, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns) / 2.0;
  const size_t worker_bytes = 8 * out.size() + 4 * plan.n_counters + 8 * plan.n_masks;
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), worker_bytes);
  auto make = [&] { return Counter(input, table, plan, block_rows); };
  auto process = [&](Counter& counter, size_t part, Order&) {
    return counter.count_rows(grid.first(part), grid.last(part));
  };
  auto finish = [&](Counter& counter) {
    for (size_t k = 0; k < out.size(); k++) out[k] += counter.result[k];
  };
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

struct WeightedWorker {
  std::vector<uint32_t> groups, codes;
  std::vector<uint8_t> present;
  Vector weights, sums;
};

bool count_weighted(const Input& input, const Table& table, const int64_t* sizes, Vector& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns;
  // An additional level of every column counts missing values; an additional group counts skipped rows.
  std::vector<size_t> offsets(n_columns + 1, 0);
  for (size_t j = 0; j < n_columns; j++) offsets[j + 1] = offsets[j] + static_cast<size_t>(sizes[j]) + 1;
  const size_t n_sums = offsets[n_columns] * (n_groups + 1), n_levels = offsets[n_columns] - n_columns;

  const size_t block_rows = std::min<size_t>(2048, table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, n_columns, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(n_columns);
  auto make = [&] {
    return WeightedWorker{std::vector<uint32_t>(block_rows), std::vector<uint32_t>(block_rows),
                          std::vector<uint8_t>(block_rows), Vector(block_rows), Vector(n_sums)};
  };
  auto process = [&](WeightedWorker& worker, size_t part, Order& order) {
    std::fill(worker.sums.begin(), worker.sums.end(), 0.0);
    const size_t last = grid.last(part);
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t n = std::min(block_rows, last - first);
      if (!kernels.decode_groups(input.groups, first, n, worker.groups.data())) return false;
      for (size_t i = 0; i < n; i++) {
        worker.weights[i] = input.weights.at(first + i, 0);
        worker.present[i] = worker.weights[i] != 0.0 && worker.groups[i] < n_groups;
      }
      for (size_t j = 0; j < n_columns; j++) {
        const uint32_t size = static_cast<uint32_t>(sizes[j]);
        if (!kernels.load_codes(table.column(j), first, n, size, worker.present.data(), worker.codes.data())) {
          return false;
        }
        kernels.count_weighted(worker.codes.data(), worker.groups.data(), worker.weights.data(), n, size,
                               worker.sums.data() + offsets[j] * (n_groups + 1));
      }
    }
    return order.in_turn(0, part, [&] {
      for (size_t j = 0; j < n_columns; j++) {
        const size_t size = static_cast<size_t>(sizes[j]);
        const double* sums = worker.sums.data() + offsets[j] * (n_groups + 1);
        for (size_t g = 0; g < n_groups; g++) {
          double* target = out.data() + g * n_levels + offsets[j] - j;
          for (size_t k = 0; k < size; k++) target[k] += sums[g * (size + 1) + k];
        }
      }
    });
  };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), 8 * n_sums);
  return run_parts(grid.n_parts, threads, 1, make, process, [](WeightedWorker&) {});
}

struct SoftWorker {
  std::vector<uint8_t> present, narrow;
  std::vector<uint32_t> codes;
  Aligned<double> weights, sums;
};

// The weights of a row are added as vectors, a few columns at a time, to the sums of a level: those of all groups,
// contiguous and padded to whole cache lines.
bool count_soft(const Input& input, const Table& table, const int64_t* sizes, Vector& out) {
  const Kernels& kernels = input.kernels;
  const size_t n_groups = input.groups.n_groups, n_columns = table.n_columns, pitch = whole_lines(n_groups);
  // An additional level of every column counts missing values: the one after the last that the type can represent.
  std::vector<size_t> offsets(n_columns + 1, 0);
  std::vector<uint32_t> limits(n_columns);
  for (size_t j = 0; j < n_columns; j++) {
    offsets[j + 1] = offsets[j] + static_cast<size_t>(sizes[j]) + 1;
    limits[j] = static_cast<uint32_t>(code_limit(table.column(j).type, static_cast<uint64_t>(sizes[j])));
  }
  const size_t n_sums = offsets[n_columns] * pitch, n_levels = offsets[n_columns] - n_columns;

  const size_t block_rows = std::min<size_t>(256, table.n_rows + 1);
  const Grid grid = make_grid(table.n_rows, n_columns * pitch, block_rows, n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(n_columns * pitch) / 8.0;
  const bool together = table.row_major() && n_columns > 1;
  auto make = [&] {
    return SoftWorker{std::vector<uint8_t>(block_rows),
                      std::vector<uint8_t>(together ? block_rows * std::min(column_chunk, n_columns) : 0),
                      std::vector<uint32_t>(block_rows * most_soft_columns), Aligned<double>(block_rows * pitch),
                      Aligned<double>(n_sums)};
  };
  auto count_block = [&](SoftWorker& worker, size_t first, size_t n, size_t chunk) {
    const size_t n_chunk = std::min(column_chunk, n_columns - chunk);
    if (together) {
      kernels.load_narrow_codes(columns_of(table, chunk, n_chunk), first, n, worker.narrow.data(), block_rows);
    }
    for (size_t start = 0; start < n_chunk; start += most_soft_columns) {
      const size_t n_some = std::min(most_soft_columns, n_chunk - start);
      double* sums[most_soft_columns];
      for (size_t k = 0; k < n_some; k++) {
        const size_t j = chunk + start + k;
        const bool narrowed = together && sizes[j] <= static_cast<int64_t>(most_narrow_levels);
        Column column = table.column(j);
        if (narrowed) column = Column{worker.narrow.data() + (start + k) * block_rows, 1, Type::uint8};
        uint32_t* codes = worker.codes.data() + k * block_rows;
        if (!kernels.load_codes(column, narrowed ? 0 : first, n, limits[j], worker.present.data(), codes)) return false;
        sums[k] = worker.sums.data() + offsets[j] * pitch;
      }
      kernels.count_soft(worker.codes.data(), block_rows, n_some, worker.weights.data(), n, pitch, sums);
    }
    return true;
  };
  auto process = [&](SoftWorker& worker, size_t part, Order& order) {
    std::fill(worker.sums.data(), worker.sums.data() + n_sums, 0.0);
    const size_t last = grid.last(part);
    for (size_t first = grid.first(part); first < last; first += block_rows) {
      const size_t n = std::min(block_rows, last - first);
      kernels.load_weights(input.weights, first, n, n_groups, worker.weights.data(), pitch, worker.present.data());
      for (size_t chunk = 0; chunk < n_columns; chunk += column_chunk) {
        if (!count_block(worker, first, n, chunk)) return false;
      }
    }
    return order.in_turn(0, part, [&] {
      for (size_t j = 0; j < n_columns; j++) {
        const double* sums = worker.sums.data() + offsets[j] * pitch;
        for (size_t g = 0; g < n_groups; g++) {
          double* target = out.data() + g * n_levels + offsets[j] - j;
          for (size_t k = 0; k < limits[j]; k++) target[k] += sums[k * pitch + g];
        }
      }
    });
  };
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), 8 * n_sums);
  return run_parts(grid.n_parts, threads, 1, make, process, [](SoftWorker&) {});
}

}  // namespace

bool count_codes(const Input& input, const Table& table, const int64_t* sizes, Vector& out) {
  size_t n_levels = 0;
  for (size_t j = 0; j < table.n_columns; j++) n_levels += static_cast<size_t>(sizes[j]);
  out.assign(input.groups.n_groups * n_levels, 0.0);
  if (input.weights.soft) return count_soft(input, table, sizes, out);
  return input.weights.given() ? count_weighted(input, table, sizes, out)
                               : count_unweighted(input, table, sizes, out);
}

bool count_groups(const Input& input, size_t n_rows, std::vector<int64_t>& rows, Vector& weight) {
  const size_t n_groups = input.groups.n_groups;
  rows.assign(n_groups, 0);
  weight.assign(n_groups, 0.0);
  if (!input.weights.given()) {
    if (!input.groups.given()) {
      rows[0] = static_cast<int64_t>(n_rows);
    } else {
      // The groups are the codes of one column in a single group.
      Table table;
      table.n_rows = n_rows;
      table.n_columns = 1;
      table.separate = true;
      table.columns = &input.groups.codes;
      const int64_t size = static_cast<int64_t>(n_groups);
      Vector counts;
      if (!count_codes(Input{input.kernels, Groups(), Weights(), input.threads}, table, &size, counts)) return false;
      std::copy(counts.begin(), counts.end(), rows.begin());
    }
    std::copy(rows.begin(), rows.end(), weight.begin());
    return true;
  }
  const size_t block_rows = std::min<size_t>(2048, n_rows + 1);
  std::vector<uint32_t> groups(block_rows);
  for (size_t first = 0; first < n_rows; first += block_rows) {
    const size_t n = std::min(block_rows, n_rows - first);
    if (!input.weights.soft && !input.kernels.decode_groups(input.groups, first, n, groups.data())) return false;
    for (size_t i = 0; i < n; i++) {
      const size_t begin = input.weights.soft ? 0 : groups[i];
      const size_t end = input.weights.soft ? n_groups : std::min<size_t>(n_groups, begin + 1);
      for (size_t g = begin; g < end; g++) {
        const double added = input.weights.at(first + i, g);
        rows[g] += added > 0.0;
        weight[g] += added;
      }
    }
  }
  return true;
}

}  // namespace tallybayes
