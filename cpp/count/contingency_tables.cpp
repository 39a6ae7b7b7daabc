// Driver of contingency tables: every block of rows is loaded once for all sets of columns, while it is in cache.
// Unweighted counts are integers, so threads may add them in any order; weighted sums are merged in the order of the
// parts.
#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t strip_rows = 64 * joint_strip;
constexpr size_t most_strips = 7;  // in a block; with 8 the masks of levels would share cache lines
constexpr size_t most_mask_members = 16;  // columns with one level add no cells, so this does not bound the depth
constexpr size_t most_short_cells = 65535;  // keys of 16 bits, and one for missing values
constexpr size_t most_turning_cells = 16383;  // four larger tables do not fit into the second-level cache

enum class Way { nothing, masks, bytes, codes };

struct ColumnPlan {
  uint32_t size = 0;
  uint32_t limit = 0;  // levels that this type can represent
  bool narrow = false;  // few enough levels for bytes
  bool masks = false, codes = false;
  size_t first_mask = 0;  // index of its first mask, in levels, and of its codes, in columns
  size_t first_code = 0;
};

struct SetPlan {
  Way way = Way::nothing;
  std::vector<size_t> columns;
  std::vector<JointMember> members;
  size_t n_cells = 0;
  size_t output = 0;  // index of its first cell among those of all sets
  size_t counters = 0;  // index of its first counter among those of this method
  size_t pitch = 0;  // distance between four tables of counters; 0: only one table
};

// The method of every set, and its requirements.
struct JointPlan {
  std::vector<ColumnPlan> columns;
  std::vector<SetPlan> sets;
  size_t n_cells = 0, n_levels = 0, n_codes = 0;
  size_t n_partial = 0, n_counters = 0, n_sums = 0;  // sums of masks; counters of keys; weighted sums
  bool weighted = false;
  size_t bytes() const { return 8 * n_partial + 4 * n_counters + 8 * n_sums; }
};

// Benchmarked for 512 rows: a cell costs about 3 cycles if bits are counted in vectors, otherwise 13; a level about
// 20, shared by the sets of a column; keys and counters about 900.
bool masks_are_worth_it(const Kernels& kernels, const SetPlan& set, size_t n_levels) {
  const size_t cell = kernels.count_masks ? 3 : 13;
  return set.columns.size() <= most_mask_members && cell * set.n_cells + 8 * n_levels <= 900;
}

JointPlan make_plan(const Input& input, const Table& table, const int64_t* sizes, const std::vector<JointSet>& sets) {
  JointPlan plan;
  plan.weighted = input.weights.given();
  for (size_t j = 0; j < table.n_columns; j++) {
    ColumnPlan column;
    column.size = static_cast<uint32_t>(sizes[j]);
    column.limit = static_cast<uint32_t>(code_limit(table.column(j).type, column.size));
    column.narrow = column.size <= most_narrow_levels;
    column.codes = plan.weighted || !column.narrow;  // checked even if no set contains it
    plan.columns.push_back(column);
  }
  for (const JointSet& given : sets) {
    SetPlan set;
    set.columns = given.columns;
    set.n_cells = given.n_cells;
    set.output = plan.n_cells;
    plan.n_cells += set.n_cells;
    size_t n_levels = 0, stride = set.n_cells;
    bool narrow = true;
    for (const size_t j : set.columns) {
      const uint32_t size = plan.columns[j].size;
      n_levels += size;
      narrow = narrow && plan.columns[j].narrow;
      if (stride) stride /= size;
      set.members.push_back({nullptr, nullptr, nullptr, size, static_cast<uint32_t>(stride)});
    }
    if (set.n_cells == 0) {
      set.way = Way::nothing;
    } else if (plan.weighted) {
      set.way = Way::codes;
      set.counters = plan.n_sums;
      plan.n_sums += set.n_cells + 1;
    } else if (narrow && masks_are_worth_it(input.kernels, set, n_levels)) {
      set.way = Way::masks;
      set.counters = plan.n_partial;
      plan.n_partial += 8 * set.n_cells;
    } else {
      set.way = narrow && set.n_cells <= most_short_cells ? Way::bytes : Way::codes;
      set.counters = plan.n_counters;
      if (set.way == Way::bytes && set.n_cells <= most_turning_cells) set.pitch = set.n_cells + 1;
      plan.n_counters += set.n_cells + 1 + 3 * set.pitch;
    }
    for (const size_t j : set.columns) {
      plan.columns[j].masks |= set.way == Way::masks;
      plan.columns[j].codes |= set.way == Way::codes;
    }
    plan.sets.push_back(std::move(set));
  }
  for (ColumnPlan& column : plan.columns) {
    column.first_mask = plan.n_levels;
    column.first_code = plan.n_codes;
    plan.n_levels += column.masks ? column.size : 0;
    plan.n_codes += column.codes;
  }
  return plan;
}

// Byte codes are read in place.
bool readable(const Column& column) { return size_of(column.type) == 1 && column.contiguous(); }

// Data that are read again should stay in cache: the scratch memory, and the block itself if columns are read one by
// one from rows. Otherwise the processor prefetches long columns better than short ones.
size_t choose_rows(const Table& table, const JointPlan& plan) {
  size_t row_bytes = plan.n_levels / 8 + 1;
  for (size_t j = 0; j < table.n_columns; j++) {
    const ColumnPlan& column = plan.columns[j];
    if (column.codes) row_bytes += 4 + size_of(table.column(j).type);
    if (column.narrow && !(column.masks && readable(table.column(j)))) row_bytes++;
  }
  const size_t n_strips = std::clamp<size_t>((size_t{256} << 10) / row_bytes / strip_rows, 1, most_strips);
  return std::min(n_strips, table.n_rows / strip_rows + 1) * strip_rows;
}

class JointCounter {
 public:
  JointCounter(const Input& input, const Table& table, const JointPlan& plan, size_t block_rows)
      : kernels_(input.kernels), weights_(input.weights), table_(table), plan_(plan), block_rows_(block_rows),
        pitch_(block_rows + 64), partial_(plan.n_partial), masks_(plan.n_levels * block_rows / 64),
        counters_(plan.n_counters), present_(block_rows, 1), bytes_(table.n_columns),
        codes_(plan.n_codes * pitch_), keys_(block_rows), no_groups_(block_rows),
        weight_(plan.weighted ? block_rows : 0), sums(plan.n_sums) {
    bool narrow = false;
    for (size_t j = 0; j < table.n_columns; j++) {
      narrow |= !plan.weighted && plan.columns[j].narrow && !readable(table.column(j));
    }
    if (narrow) narrow_.resize(pitch_ * table.n_columns);
  }

  bool count_rows(size_t first, size_t last) {
    for (size_t start = first; start < last; start += block_rows_) {
      const size_t n = std::min(block_rows_, last - start);
      if (!load(start, n)) return false;
      for (const SetPlan& set : plan_.sets) count_set(set, n);
    }
    n_rows_ += last - first;
    return true;
  }

  // Adds the counters to the tables and resets them.
  void fold(Vector& tables) {
    for (const SetPlan& set : plan_.sets) {
      double* target = tables.data() + set.output;
      for (size_t k = 0; k < set.n_cells; k++) {
        uint64_t count = 0;
        if (set.way == Way::masks) {
          for (size_t lane = 0; lane < 8; lane++) count += partial_.data()[set.counters + 8 * k + lane];
        } else {
          const uint32_t* counter = counters_.data() + set.counters + k;
          count = counter[0];
          for (size_t turn = 1; set.pitch && turn < 4; turn++) count += counter[turn * set.pitch];
        }
        target[k] += static_cast<double>(count);
      }
    }
    std::fill(partial_.data(), partial_.data() + plan_.n_partial, 0);
    std::fill(counters_.begin(), counters_.end(), 0);
    n_rows_ = 0;
  }

  // Whether the 32-bit counters can take this many more rows before the next fold.
  bool has_room(size_t n_rows) const { return n_rows <= UINT32_MAX - n_rows_; }

 private:
  bool load(size_t first, size_t n) {
    for (size_t i = 0; plan_.weighted && i < n; i++) {
      weight_[i] = weights_.at(first + i, 0);
      present_[i] = weight_[i] != 0.0;
    }
    n_words_ = (n + strip_rows - 1) / strip_rows * joint_strip;
    const bool together = !narrow_.empty() && table_.row_major();
    if (together) kernels_.load_narrow_codes(table_, first, n, narrow_.data(), pitch_);
    for (size_t j = 0; j < table_.n_columns; j++) {
      const ColumnPlan& plan = plan_.columns[j];
      const Column column = table_.column(j);
      if (plan.codes) {
        uint32_t* codes = codes_.data() + plan.first_code * pitch_;
        if (!kernels_.load_codes(column, first, n, plan.size, present_.data(), codes)) return false;
      }
      if (plan_.weighted || !plan.narrow) continue;
      bytes_[j] = narrow_.data() + j * pitch_;
      if (readable(column)) {
        bytes_[j] = column.at(first);
      } else if (!together) {
        Table alone;
        alone.n_columns = 1;
        alone.separate = true;
        alone.columns = &column;
        kernels_.load_narrow_codes(alone, first, n, narrow_.data() + j * pitch_, pitch_);
      }
      if (kernels_.has_bad_bytes(bytes_[j], present_.data(), n, static_cast<uint8_t>(plan.limit))) return false;
      if (plan.masks) {
        uint64_t* masks = masks_.data() + plan.first_mask * (block_rows_ / 64);
        kernels_.level_masks(bytes_[j], n, plan.size, masks, n_words_);
      }
    }
    return true;
  }

  void count_set(const SetPlan& set, size_t n) {
    if (set.way == Way::nothing) return;
    const size_t n_members = set.columns.size();
    members_ = set.members;
    for (size_t k = 0; k < n_members; k++) {
      const size_t j = set.columns[k];
      const ColumnPlan& plan = plan_.columns[j];
      members_[k].masks = masks_.data() + plan.first_mask * (block_rows_ / 64);
      members_[k].bytes = bytes_[j];
      members_[k].codes = codes_.data() + plan.first_code * pitch_;
    }
    if (set.way == Way::masks) {
      kernels_.count_joint_masks(members_.data(), n_members, n_words_, partial_.data() + set.counters);
    } else if (set.way == Way::bytes) {
      kernels_.count_joint_bytes(members_.data(), n_members, n, static_cast<uint16_t>(set.n_cells),
                                 counters_.data() + set.counters, set.pitch);
    } else {
      kernels_.join_codes(members_.data(), n_members, n, static_cast<uint32_t>(set.n_cells), keys_.data());
      if (plan_.weighted) {
        kernels_.count_weighted(keys_.data(), no_groups_.data(), weight_.data(), n, 0, sums.data() + set.counters);
      } else {
        kernels_.count_single(keys_.data(), no_groups_.data(), n, 0, counters_.data() + set.counters);
      }
    }
  }

  const Kernels& kernels_;
  const Weights& weights_;
  const Table& table_;
  const JointPlan& plan_;
  size_t block_rows_, n_words_ = 0, n_rows_ = 0;
  size_t pitch_;  // distance between columns: not a power of two, so that columns do not share cache sets
  Aligned<uint64_t> partial_, masks_;
  std::vector<uint32_t> counters_;
  std::vector<uint8_t> present_, narrow_;
  std::vector<const uint8_t*> bytes_;
  std::vector<uint32_t> codes_, keys_, no_groups_;
  std::vector<JointMember> members_;
  Vector weight_;

 public:
  Vector sums;  // of the weighted rows since the last reset
};

}  // namespace

bool count_joint(const Input& input, const Table& table, const int64_t* sizes, const std::vector<JointSet>& sets,
                 Vector& tables) {
  const JointPlan plan = make_plan(input, table, sizes, sets);
  tables.assign(plan.n_cells, 0.0);
  const size_t block_rows = choose_rows(table, plan);
  const Grid grid = make_grid(table.n_rows, table.n_columns, block_rows, plan.n_sums);
  const double cells = static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns + sets.size()) / 4.0;
  const size_t threads = limit_threads(choose_threads(input.threads, grid.n_parts, cells), plan.bytes());
  std::mutex folding;
  auto make = [&] { return JointCounter(input, table, plan, block_rows); };
  auto process = [&](JointCounter& counter, size_t part, Order& order) {
    if (!plan.weighted && !counter.has_room(grid.part_rows)) {
      const std::lock_guard<std::mutex> lock(folding);
      counter.fold(tables);
    }
    std::fill(counter.sums.begin(), counter.sums.end(), 0.0);
    if (!counter.count_rows(grid.first(part), grid.last(part))) return false;
    if (!plan.weighted) return true;
    return order.in_turn(0, part, [&] {
      for (const SetPlan& set : plan.sets) {
        for (size_t k = 0; k < set.n_cells; k++) tables[set.output + k] += counter.sums[set.counters + k];
      }
    });
  };
  auto finish = [&](JointCounter& counter) {
    const std::lock_guard<std::mutex> lock(folding);
    if (!plan.weighted) counter.fold(tables);
  };
  return run_parts(grid.n_parts, threads, 1, make, process, finish);
}

}  // namespace tallybayes
