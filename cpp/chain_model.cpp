#include "chain_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "elementary.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double near_enough = 10.0;  // logarithms up to here need no shift

double largest_of(const double* values, size_t n) { return n ? *std::max_element(values, values + n) : -infinity; }

double shift_for(double largest) {
  return std::abs(largest) <= near_enough || largest == -infinity ? 0.0 : largest;
}

// Writes a row of logarithms and its exponentials; false where one is possible by a hair only.
bool write_row(const double* from, size_t n, size_t stride, double shift, size_t pitch, double* plain, double* logs) {
  bool clear = true;
  for (size_t j = 0; j < pitch; j++) {
    logs[j] = j < n ? from[j * stride] : -infinity;
    plain[j] = exponential(logs[j] - shift);
    clear &= logs[j] == -infinity || plain[j] >= chain_tiny;
  }
  return clear;
}

}  // namespace

ChainModel::ChainModel(const ChainInput& given, size_t lanes) : input(given) {
  const size_t n = input.n_states;
  pitch = (n + lanes - 1) / lanes * lanes;
  width = (n + 7) / 8 * 8;
  auto prepare = [&](ChainTable& table, size_t n_rows) {
    table.plain.resize(n_rows * pitch);
    table.logs.resize(n_rows * pitch);
  };
  auto write = [&](ChainTable& table, size_t row, const double* from, size_t stride, double shift) {
    const size_t at = row * pitch;
    return write_row(from, n, stride, shift, pitch, table.plain.data() + at, table.logs.data() + at);
  };
  const Vector free_end(n, 0.0);
  const double* ending = input.end ? input.end : free_end.data();
  prepare(start, 1);
  prepare(end, 1);
  prepare(transition, n);
  prepare(turned, n);
  start_shift = shift_for(largest_of(input.start, n));
  end_shift = shift_for(largest_of(ending, n));
  transition_shift = shift_for(largest_of(input.transition, n * n));
  clear &= write(start, 0, input.start, 1, start_shift);
  write(end, 0, ending, 1, end_shift);
  for (size_t i = 0; i < n; i++) {
    clear &= write(transition, i, input.transition + i * n, 1, transition_shift);
    write(turned, i, input.transition + i, n, transition_shift);
    for (size_t j = 0; j < n; j++) every_move &= transition.plain.data()[i * pitch + j] >= chain_tiny;
  }
  plain = {n, pitch, transition.plain.data(), turned.plain.data()};
  logs = {n, pitch, transition.logs.data(), turned.logs.data()};
  if (!input.coded()) return;
  prepare(table, input.n_levels + 1);
  for (size_t level = 0; level < input.n_levels; level++) {
    const double* row = input.table + level * n;
    const double shift = shift_for(largest_of(row, n));
    if (shift != 0.0) {
      level_shifts.resize(input.n_levels + 1, 0.0);
      level_shifts[level] = shift;
    }
    clear &= write(table, level, row, 1, shift);
  }
  const Vector missing(n, 0.0);
  write(table, input.n_levels, missing.data(), 1, 0.0);
}

ChainBatch next_batch(const ChainModel& model, size_t sequence, size_t last, size_t most_streams) {
  constexpr size_t cache = size_t{1} << 20, most = size_t{1} << 26;
  const size_t row_bytes = model.width * sizeof(double), first = sequence;
  size_t n_steps = 0;
  while (sequence < last) {
    const size_t n_bytes = (n_steps + model.length(sequence)) * row_bytes;
    const bool fits = n_bytes <= cache || sequence == first || (sequence - first < most_streams && n_bytes <= most);
    if (!fits) break;
    n_steps += model.length(sequence++);
  }
  const size_t n = sequence - first, n_rounds = (n + most_streams - 1) / most_streams;
  return {first, sequence, model.first_step(first), n_steps, (n + n_rounds - 1) / n_rounds};
}

double chain_cells(const ChainModel& model) {
  const double n = static_cast<double>(model.input.n_states);
  return static_cast<double>(model.input.n_steps()) * (4.0 + n + 0.25 * n * n);
}

std::vector<size_t> chain_parts(const ChainModel& model, size_t n_sums) {
  constexpr double worth_a_part = 65536.0;
  constexpr size_t most_parts = 64;
  const size_t n_sequences = model.input.n_sequences, n_steps = model.input.n_steps();
  // Sequences that take turns should be in one part; but a few long ones are better off apart.
  size_t n = std::min(most_parts, std::max(n_sequences / 16, std::min<size_t>(n_sequences, 8)));
  n = std::min(n, static_cast<size_t>(chain_cells(model) / worth_a_part) + 1);
  n = std::max<size_t>(1, std::min(n, n_steps * model.width / (8 * n_sums + 1) + 1));
  std::vector<size_t> parts{0};
  for (size_t part = 1; part < n; part++) {
    const auto target = static_cast<int64_t>(n_steps / n * part);
    const int64_t* offsets = model.input.offsets;
    const auto cut = static_cast<size_t>(std::lower_bound(offsets, offsets + n_sequences, target) - offsets);
    if (cut > parts.back() && cut < n_sequences) parts.push_back(cut);
  }
  parts.push_back(n_sequences);
  return parts;
}

}  // namespace tallybayes
