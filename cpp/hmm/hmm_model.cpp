#include "hmm/hmm_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double near_enough = 10.0;  // logarithms up to here need no shift

double largest_of(const double* values, size_t n) { return n ? *std::max_element(values, values + n) : -infinity; }

double shift_for(double largest) {
  return std::abs(largest) <= near_enough || largest == -infinity ? 0.0 : largest;
}

// Writes a row of logarithms and its exponentials; false if one is positive but tiny.
bool write_row(const double* from, size_t n, double shift, size_t pitch, double* plain, double* logs) {
  bool clear = true;
  for (size_t j = 0; j < pitch; j++) {
    logs[j] = j < n ? from[j] : -infinity;
    plain[j] = logs[j] == -infinity ? 0.0 : exponential(logs[j] - shift);
    clear &= logs[j] == -infinity || plain[j] >= chain_tiny;
  }
  return clear;
}

// to[j][i] = from[i][j], padded with `nothing`; a few rows at a time, so that they stay in cache.
void turn(const double* from, size_t n, size_t pitch, double nothing, double* to) {
  constexpr size_t few = 8;
  for (size_t first = 0; first < pitch; first += few) {
    for (size_t j = 0; j < n; j++) {
      for (size_t i = first; i < std::min(pitch, first + few); i++) {
        to[j * pitch + i] = i < n ? from[i * pitch + j] : nothing;
      }
    }
  }
}

// The transitions of `rows`, without those equal to `nothing`, in panels.
ChainPanels fill_panels(const ChainMatrix& matrix, const double* rows, double nothing, size_t lanes,
                        ChainModel::Panels& panels) {
  const size_t n_states = matrix.n_states, pitch = matrix.pitch, n_all = pitch / lanes;
  auto leads = [&](size_t i, size_t v) {
    const double* row = rows + i * pitch + v * lanes;
    return std::any_of(row, row + lanes, [&](double x) { return x != nothing; });
  };
  size_t n_vectors = 0;  // that have a possible transition
  std::vector<uint8_t> some(n_states * n_all);
  for (size_t k = 0; k < some.size(); k++) n_vectors += some[k] = static_cast<uint8_t>(leads(k / n_all, k % n_all));
  // Panels of twice the width are faster if most transitions are possible.
  const size_t vectors = 2 * n_vectors > some.size() ? 2 : 1, width = vectors * lanes;
  const size_t n_panels = (n_all + vectors - 1) / vectors;
  auto wanted = [&](size_t i, size_t panel) {
    const uint8_t* at = some.data() + i * n_all + panel * vectors;
    return at[0] || (vectors == 2 && panel * 2 + 1 < n_all && at[1]);
  };
  panels.begin.assign(1, 0);
  panels.from.clear();
  for (size_t panel = 0; panel < n_panels; panel++) {
    for (size_t i = 0; i < n_states; i++) {
      if (wanted(i, panel)) panels.from.push_back(static_cast<uint32_t>(i));
    }
    panels.begin.push_back(panels.from.size());
  }
  panels.values.resize(panels.from.size() * width);
  for (size_t panel = 0; panel < n_panels; panel++) {
    const size_t n = std::min(width, pitch - panel * width);
    for (size_t e = panels.begin[panel]; e < panels.begin[panel + 1]; e++) {
      double* to = panels.values.data() + e * width;
      std::copy_n(rows + panels.from[e] * pitch + panel * width, n, to);
      std::fill(to + n, to + width, nothing);
    }
  }
  return {vectors, n_panels, panels.begin.data(), panels.from.data(), panels.values.data()};
}

}  // namespace

ChainModel::ChainModel(const ChainInput& given, size_t lanes) : input(given), lanes_(lanes) {
  const size_t n = input.n_states;
  pitch = (n + lanes - 1) / lanes * lanes;
  width = (n + 7) / 8 * 8;
  auto prepare = [&](ChainTable& table, size_t n_rows) {
    table.plain.resize(n_rows * pitch);
    table.logs.resize(n_rows * pitch);
  };
  auto write = [&](ChainTable& table, size_t row, const double* from, double shift) {
    const size_t at = row * pitch;
    return write_row(from, n, shift, pitch, table.plain.data() + at, table.logs.data() + at);
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
  clear &= write(start, 0, input.start, start_shift);
  write(end, 0, ending, end_shift);
  for (size_t i = 0; i < n; i++) {
    clear &= write(transition, i, input.transition + i * n, transition_shift);
    for (size_t j = 0; j < n; j++) every_move &= transition.plain.data()[i * pitch + j] >= chain_tiny;
  }
  turn(transition.plain.data(), n, pitch, 0.0, turned.plain.data());
  turn(transition.logs.data(), n, pitch, -infinity, turned.logs.data());
  plain = {n, pitch, transition.plain.data(), turned.plain.data(), {}, {}};
  if (wide()) {
    plain.into = fill_panels(plain, plain.transition, 0.0, lanes, panels_[0]);
    plain.out_of = fill_panels(plain, plain.turned, 0.0, lanes, panels_[1]);
    n_values = panels_[0].from.size() * plain.into.vectors * lanes;
  }
  if (!input.coded()) return;
  prepare(table, input.n_levels + 1);
  for (size_t level = 0; level < input.n_levels; level++) {
    const double* row = input.table + level * n;
    const double shift = shift_for(largest_of(row, n));
    if (shift != 0.0) {
      level_shifts.resize(input.n_levels + 1, 0.0);
      level_shifts[level] = shift;
    }
    clear &= write(table, level, row, shift);
  }
  const Vector missing(n, 0.0);
  write(table, input.n_levels, missing.data(), 0.0);
}

const ChainMatrix& ChainModel::logs() const {
  std::call_once(made_, [&] {
    logs_ = {input.n_states, pitch, transition.logs.data(), turned.logs.data(), {}, {}};
    if (!wide()) return;
    logs_.into = fill_panels(logs_, logs_.transition, -infinity, lanes_, panels_[2]);
    logs_.out_of = fill_panels(logs_, logs_.turned, -infinity, lanes_, panels_[3]);
  });
  return logs_;
}

ChainBatch next_batch(const ChainModel& model, size_t sequence, size_t last) {
  constexpr size_t cache = size_t{1} << 20, most = size_t{1} << 25, most_steps = size_t{1} << 22;
  const size_t row_bytes = model.width * sizeof(double), first = sequence, most_streams = model.most_streams();
  const size_t n_rows = most / row_bytes;  // of states that are stored; if this is not enough, checkpoints are used
  size_t n_steps = 0, longest = 0;
  while (sequence < last) {
    const size_t length = model.length(sequence), n = n_steps + length;
    const bool all_long = length > n_rows && model.length(first) > n_rows;
    const bool bears = n <= n_rows || ((model.wide() || all_long) && n <= most_steps);
    if (!(n * row_bytes <= cache || sequence == first || (sequence - first < most_streams && bears))) break;
    n_steps = n;
    longest = std::max(longest, length);
    sequence++;
  }
  const size_t n = sequence - first, n_rounds = (n + most_streams - 1) / most_streams;
  ChainBatch batch{first, sequence, model.first_step(first), n_steps, (n + n_rounds - 1) / n_rounds, longest + 1, 1};
  if (n_steps > n_rows) {
    const auto root = static_cast<size_t>(std::sqrt(static_cast<double>(longest)));
    const size_t segment = (std::max(n_rows / n, root) / chain_block + 1) * chain_block;
    if (segment + 1 < longest) batch.segment = segment, batch.n_segments = (longest - 2) / segment + 1;
  }
  return batch;
}

double chain_cells(const ChainModel& model) {
  const double n = static_cast<double>(model.input.n_states);
  return static_cast<double>(model.input.n_steps()) * (4.0 + n + 0.25 * n * n);
}

size_t crew_size(const ChainModel& model, size_t threads, size_t used) {
  constexpr size_t worth_a_meeting = 2048;  // vectors of eight to be multiplied
  if (!model.wide() || chain_cells(model) < worth_a_thread) return 1;
  const size_t n_values = model.n_values;
  const size_t n_together = std::min(model.most_streams(), model.input.n_sequences);
  const size_t useful = std::min(n_values * n_together / (8 * worth_a_meeting), model.plain.into.n_panels / 2);
  return std::max<size_t>(1, std::min((threads ? threads : available_threads()) / used, useful));
}

std::vector<size_t> chain_parts(const ChainModel& model, size_t n_sums) {
  constexpr double worth_a_part = 65536.0;
  constexpr size_t most_parts = 64;
  const size_t n_sequences = model.input.n_sequences, n_steps = model.input.n_steps();
  // Interleaved sequences should be in one part, but a few long ones are better processed separately. With very many
  // states, the threads also share interleaved sequences.
  const size_t few = model.width > 128 ? 1 : std::min<size_t>(n_sequences, 8);
  size_t n = std::min(most_parts, std::max(n_sequences / 16, few));
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
