// Sums of terms over the cells of contingency tables, the parts of structure scores of Bayesian networks. Tables that
// are small compared with the rows are counted completely, many at a time; of larger ones only the nonzero cells are
// stored, one table at a time.
#include <cmath>

#include "core/elementary.h"
#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t most_whole_cells = size_t{1} << 22;  // of the tables that are counted at once
constexpr uint64_t few_cells = 4096;  // such tables are always counted completely
constexpr uint64_t empty_key = ~uint64_t{0};

// log Γ(start + n) − log Γ(start), or n log n if start is 0.
class Term {
 public:
  explicit Term(double start) : start_(start), rest_(start > 0 ? std::log(start) - log_gamma_plus_one(start) : 0.0) {}
  double operator()(double n) const {
    if (n <= 0.0) return 0.0;
    if (start_ == 0.0) return n * std::log(n);
    // For fractional weights below 1, log Γ is computed at the next larger argument by recurrence.
    const double last = start_ + n - 1.0;
    return (last >= 0.0 ? log_gamma_plus_one(last) : log_gamma_plus_one(last + 1.0) - std::log(last + 1.0)) + rest_;
  }

 private:
  double start_, rest_;
};

double sum_table(const JointSum& set, bool lines, size_t n_last, const double* table) {
  const Term cell(set.cell_start), line(set.line_start);
  double sum = 0.0;
  for (size_t first = 0; first < set.n_cells; first += n_last) {
    double total = 0.0;
    for (size_t k = 0; k < n_last; k++) {
      sum += cell(table[first + k]);
      total += table[first + k];
    }
    if (lines) sum -= line(total);
  }
  return sum;
}

// Cells by key, in order of first occurrence.
class CellMap {
 public:
  explicit CellMap(size_t n_rows) {
    size_t capacity = 16;
    while (capacity < 2 * n_rows) capacity *= 2, shift_--;
    places_.assign(capacity, Place{empty_key, 0.0});
  }
  void clear() {
    for (const size_t place : met_) places_[place] = {empty_key, 0.0};
    met_.clear();
  }
  void add(uint64_t key, double weight) {
    size_t place = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
    while (places_[place].key != key) {
      if (places_[place].key == empty_key) {
        places_[place].key = key;
        met_.push_back(place);
        break;
      }
      place = (place + 1) & (places_.size() - 1);
    }
    places_[place].weight += weight;
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const size_t place : met_) visit(places_[place].key, places_[place].weight);
  }

 private:
  struct Place {
    uint64_t key;
    double weight;
  };
  unsigned shift_ = 60;  // 64 minus the logarithm of the capacity
  std::vector<Place> places_;
  std::vector<size_t> met_;
};

struct SparseCounter {
  CellMap cells, lines;
  std::vector<uint64_t> keys;
  explicit SparseCounter(size_t n_rows) : cells(n_rows), lines(n_rows), keys(n_rows) {}
};

}  // namespace

bool sum_joint(const Input& input, const Table& table, const int64_t* sizes, const std::vector<JointSum>& sets,
               bool lines, Vector& sums) {
  sums.assign(sets.size(), 0.0);
  const uint64_t most = std::max<uint64_t>(few_cells, 4 * table.n_rows);
  std::vector<size_t> sparse;
  std::vector<JointSet> whole;
  std::vector<size_t> places;
  Vector tables;
  auto finish_whole = [&] {
    if (!count_joint(input, table, sizes, whole, tables)) return false;
    std::vector<size_t> starts(whole.size());
    size_t n_cells = 0;
    for (size_t k = 0; k < whole.size(); k++) starts[k] = n_cells, n_cells += whole[k].n_cells;
    const size_t threads = choose_threads(input.threads, whole.size(), 8.0 * static_cast<double>(n_cells));
    auto process = [&](int, size_t k, Order&) {
      const JointSum& set = sets[places[k]];
      const size_t n_last = static_cast<size_t>(sizes[set.columns.back()]);
      sums[places[k]] = sum_table(set, lines, n_last, tables.data() + starts[k]);
      return true;
    };
    run_parts(whole.size(), threads, 1, [] { return 0; }, process, [](int) {});
    whole.clear(), places.clear();
    return true;
  };
  size_t n_cells = 0;
  for (size_t k = 0; k < sets.size(); k++) {
    if (sets[k].n_cells == 0) continue;
    if (sets[k].n_cells > most || sets[k].n_cells > most_whole_cells) {
      sparse.push_back(k);
      continue;
    }
    if (!whole.empty() && n_cells + sets[k].n_cells > most_whole_cells) {
      if (!finish_whole()) return false;
      n_cells = 0;
    }
    whole.push_back({sets[k].columns, static_cast<size_t>(sets[k].n_cells)});
    places.push_back(k);
    n_cells += static_cast<size_t>(sets[k].n_cells);
  }
  if (!finish_whole()) return false;  // also if there is none: every cell is validated
  if (sparse.empty()) return true;

  std::vector<uint8_t> present(table.n_rows, 1);
  for (size_t i = 0; input.weights.given() && i < table.n_rows; i++) present[i] = input.weights.at(i, 0) != 0.0;
  std::vector<std::vector<uint32_t>> codes(table.n_columns);
  for (const size_t k : sparse) {
    for (const size_t j : sets[k].columns) {
      if (!codes[j].empty()) continue;
      codes[j].resize(table.n_rows);
      input.kernels.load_codes(table.column(j), 0, table.n_rows, static_cast<uint32_t>(sizes[j]), present.data(),
                               codes[j].data());
    }
  }
  auto process = [&](SparseCounter& counter, size_t part, Order&) {
    const JointSum& set = sets[sparse[part]];
    std::vector<uint64_t>& keys = counter.keys;
    std::fill(keys.begin(), keys.end(), uint64_t{0});
    for (const size_t j : set.columns) {
      const uint32_t size = static_cast<uint32_t>(sizes[j]);
      const uint32_t* code = codes[j].data();
      for (size_t i = 0; i < table.n_rows; i++) {
        keys[i] = keys[i] == empty_key || code[i] >= size ? empty_key : keys[i] * size + code[i];
      }
    }
    counter.cells.clear();
    for (size_t i = 0; i < table.n_rows; i++) {
      if (keys[i] != empty_key && present[i]) {
        counter.cells.add(keys[i], input.weights.given() ? input.weights.at(i, 0) : 1.0);
      }
    }
    const Term cell(set.cell_start), line(set.line_start);
    double sum = 0.0;
    counter.cells.each([&](uint64_t, double weight) { sum += cell(weight); });
    if (lines) {
      const uint64_t n_last = static_cast<uint64_t>(sizes[set.columns.back()]);
      counter.lines.clear();
      counter.cells.each([&](uint64_t key, double weight) { counter.lines.add(key / n_last, weight); });
      counter.lines.each([&](uint64_t, double weight) { sum -= line(weight); });
    }
    sums[sparse[part]] = sum;
    return true;
  };
  const double cells = 8.0 * static_cast<double>(table.n_rows) * static_cast<double>(sparse.size());
  const size_t threads = limit_threads(choose_threads(input.threads, sparse.size(), cells), 128 * table.n_rows);
  return run_parts(sparse.size(), threads, 1, [&] { return SparseCounter(table.n_rows); }, process,
                   [](SparseCounter&) {});
}

}  // namespace tallybayes
