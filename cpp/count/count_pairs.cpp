// Counts every pair of columns in each group. The rows are sorted by group. For columns with few levels, the rows of a
// pair of levels are the AND of two bit masks; otherwise, and with weights, rows are added one by one.
#include <algorithm>

#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t block_rows = 4096;       // whose masks stay in cache
constexpr size_t most_mask_cells = 256;  // of a pair; beyond, benchmarks show that counting one by one is as fast

// Codes of one column, sorted by group; `size` for a missing value.
struct Codes {
  uint32_t size;
  size_t offset;      // of its first level
  bool narrow;  // as bytes, 255 for missing
  size_t first_mask;  // of its first level among those of all narrow columns
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> wide;

  uint32_t at(size_t row) const {
    if (!narrow) return wide[row];
    return bytes[row] == 255 ? size : bytes[row];
  }
};

struct Rows {
  std::vector<size_t> ends;    // of every group
  std::vector<size_t> order;   // rows, group by group
  std::vector<double> weight;  // in that order, if given
};

bool order_rows(const Input& input, size_t n, std::vector<uint8_t>& present, Rows& rows) {
  const size_t n_groups = input.groups.n_groups;
  std::vector<uint32_t> group(n, 0);
  if (input.groups.given() && !input.kernels.decode_groups(input.groups, 0, n, group.data())) return false;
  std::vector<size_t> next(n_groups + 1, 0);
  for (size_t i = 0; i < n; i++) {
    present[i] = group[i] < n_groups && !(input.weights.given() && input.weights.at(i, 0) == 0.0);
    if (present[i]) next[group[i] + 1]++;
  }
  for (size_t k = 0; k < n_groups; k++) next[k + 1] += next[k];
  rows.ends.assign(next.begin() + 1, next.end());
  rows.order.resize(rows.ends.empty() ? 0 : rows.ends.back());
  for (size_t i = 0; i < n; i++) {
    if (present[i]) rows.order[next[group[i]]++] = i;
  }
  if (input.weights.given()) {
    for (const size_t i : rows.order) rows.weight.push_back(input.weights.at(i, 0));
  }
  return true;
}

template <class Count>
void add_block(const Kernels& kernels, const std::vector<Codes>& columns, const Rows& rows, size_t first, size_t n,
               size_t n_levels, std::vector<uint64_t>& masks, Count* out) {
  const bool weighted = !rows.weight.empty();
  const size_t n_words = (n + 63) / 64;
  uint32_t counts[most_mask_cells];
  for (const Codes& column : columns) {
    if (weighted || !column.narrow) continue;
    kernels.level_masks(column.bytes.data() + first, n, column.size, masks.data() + column.first_mask * n_words, n_words);
  }
  for (size_t i = 0; i < columns.size(); i++) {
    const Codes& one = columns[i];
    for (size_t j = i + 1; j < columns.size(); j++) {
      const Codes& two = columns[j];
      Count* cells = out + one.offset * n_levels + two.offset;
      const size_t n_cells = static_cast<size_t>(one.size) * two.size;
      if (!weighted && one.narrow && two.narrow && n_cells <= most_mask_cells) {
        kernels.count_mask_pairs(masks.data() + one.first_mask * n_words, one.size,
                                 masks.data() + two.first_mask * n_words, two.size, n_words, counts);
        const uint32_t* count = counts;
        for (size_t a = 0; a < one.size; a++) {
          for (size_t b = 0; b < two.size; b++) cells[a * n_levels + b] += static_cast<Count>(*count++);
        }
        continue;
      }
      for (size_t row = first; row < first + n; row++) {
        const uint32_t a = one.at(row), b = two.at(row);
        if (a == one.size || b == two.size) continue;
        cells[a * n_levels + b] += weighted ? static_cast<Count>(rows.weight[row]) : Count{1};
      }
    }
  }
}

// The pairs of a later column with an earlier one, tile by tile.
template <class Count>
void mirror(Count* cells, size_t n) {
  constexpr size_t tile = 16;
  for (size_t top = 0; top < n; top += tile) {
    for (size_t left = top; left < n; left += tile) {
      for (size_t a = top; a < std::min(n, top + tile); a++) {
        for (size_t b = std::max(left, a + 1); b < std::min(n, left + tile); b++) cells[b * n + a] = cells[a * n + b];
      }
    }
  }
}

}  // namespace

template <class Count>
bool count_every_pair(const Input& input, const Table& table, const int64_t* sizes, std::vector<Count>& out) {
  const size_t n = table.n_rows, n_groups = input.groups.n_groups;
  std::vector<uint8_t> present(n);
  Rows rows;
  if (!order_rows(input, n, present, rows)) return false;
  size_t n_levels = 0, n_masks = 0;
  std::vector<Codes> columns(table.n_columns);
  std::vector<uint32_t> loaded(n);
  for (size_t j = 0; j < columns.size(); j++) {
    Codes& column = columns[j];
    column.size = static_cast<uint32_t>(sizes[j]);
    column.offset = n_levels;
    column.narrow = column.size <= most_narrow_levels;
    column.first_mask = n_masks;
    n_levels += column.size;
    n_masks += column.narrow ? column.size : 0;
    const auto limit = static_cast<uint32_t>(code_limit(table.column(j).type, column.size));
    if (!input.kernels.load_codes(table.column(j), 0, n, limit, present.data(), loaded.data())) return false;
    for (const size_t i : rows.order) {
      const uint32_t code = loaded[i] < limit ? loaded[i] : column.size;
      if (column.narrow) {
        column.bytes.push_back(code == column.size ? uint8_t{255} : static_cast<uint8_t>(code));
      } else {
        column.wide.push_back(code);
      }
    }
  }
  out.assign(n_groups * n_levels * n_levels, Count{0});
  std::vector<uint64_t> masks(n_masks * (block_rows / 64));
  for (size_t k = 0, first = 0; k < n_groups; first = rows.ends[k], k++) {
    Count* cells = out.data() + k * n_levels * n_levels;
    for (size_t start = first; start < rows.ends[k]; start += block_rows) {
      const size_t n_here = std::min(block_rows, rows.ends[k] - start);
      add_block(input.kernels, columns, rows, start, n_here, n_levels, masks, cells);
    }
    mirror(cells, n_levels);
  }
  return true;
}

template bool count_every_pair(const Input&, const Table&, const int64_t*, std::vector<float>&);
template bool count_every_pair(const Input&, const Table&, const int64_t*, std::vector<double>&);

}  // namespace tallybayes
