// What the drivers of chains share: the model in the layout of the loops, batches of sequences, and streams that take
// turns.
#pragma once

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "chain.h"

namespace tallybayes {

// Working space that starts on a cache line and is not cleared. Large ones ask for large pages.
template <class T>
class Room {
 public:
  Room() = default;
  Room(Room&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { std::free(data_); }
  // Room for n at least; what was there before is lost if there was less.
  T* of(size_t n) {
    if (n > size_ || data_ == nullptr) {
      std::free(std::exchange(data_, nullptr));
      size_ = 0;
      n += n / 4;  // batches differ a little, and new memory is slow
      constexpr size_t line = 64, large_page = size_t{1} << 21;
      const size_t unit = n * sizeof(T) >= large_page ? large_page : line;
      const size_t n_bytes = (n * sizeof(T) + line) / unit * unit + unit;
      void* memory = nullptr;
      if (posix_memalign(&memory, unit, n_bytes) != 0) throw std::bad_alloc();
      data_ = static_cast<T*>(memory);
#if defined(__linux__)
      if (unit == large_page) madvise(data_, n_bytes, MADV_HUGEPAGE);
#endif
      size_ = n;
    }
    return data_;
  }
  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Rows of `pitch` numbers with their logarithms beside them.
struct ChainTable {
  Aligned<double> plain, logs;
};

struct ChainModel {
  ChainInput input;
  size_t pitch;
  size_t width;  // the same for eight lanes: what goes by it is the same in every tier, and so is the order of all sums
  ChainTable start, transition, turned, end, table;  // the last row of the table is that of a missing code
  double start_shift = 0.0, transition_shift = 0.0, end_shift = 0.0;  // taken out of the logarithms before exp
  Vector level_shifts;                                                // the same for every level; empty: all 0
  bool every_move = true;  // every transition is possible, and not by a hair
  bool clear = true;       // what is possible at all, is so by more than a hair
  ChainMatrix plain, logs;

  ChainModel(const ChainInput&, size_t lanes);
  size_t length(size_t sequence) const {
    return static_cast<size_t>(input.offsets[sequence + 1] - input.offsets[sequence]);
  }
  size_t first_step(size_t sequence) const { return static_cast<size_t>(input.offsets[sequence]); }
  double weight(size_t sequence) const { return input.weight ? input.weight[sequence] : 1.0; }
  // How many sequences take turns: the fewer vectors a step has, the longer it waits for the one before it.
  size_t most_streams() const { return width <= 16 ? 8 : width <= 32 ? 4 : 2; }
};

// Sequences in a row whose working space is held at the same time.
struct ChainBatch {
  size_t first, last;  // sequences
  size_t first_step, n_steps;
  size_t n_streams;  // that take turns: not the most there may be, if the last sequences were then left to themselves
};

// The batch that begins with this sequence: as many as fit the cache, and some more if only these can take turns.
ChainBatch next_batch(const ChainModel&, size_t sequence, size_t last, size_t most_streams);

// Cuts the sequences into parts, for the threads and for adding up; `n_sums` as many as are added up for each part.
std::vector<size_t> chain_parts(const ChainModel&, size_t n_sums);
// Steps times what one costs, in cells as choose_threads counts them.
double chain_cells(const ChainModel&);

// Σ at(k) with the rounding errors added at the end. Several sums, so that an addition need not wait for the last one.
template <class At>
double careful_sum(size_t n, At at) {
  constexpr size_t n_sums = 4;
  double sum[n_sums] = {}, rest[n_sums] = {};
  auto add = [&](size_t j, double x) {
    const double moved = sum[j] + x, part = moved - sum[j];
    rest[j] += (sum[j] - (moved - part)) + (x - part);
    sum[j] = moved;
  };
  size_t k = 0;
  for (; k + n_sums <= n; k += n_sums) {
    for (size_t j = 0; j < n_sums; j++) add(j, at(k + j));
  }
  for (; k < n; k++) add(0, at(k));
  for (size_t j = 1; j < n_sums; j++) {
    add(0, sum[j]);
    rest[0] += rest[j];
  }
  return sum[0] + rest[0];
}

struct ChainTurn {
  size_t sequence, steps_left, slot;
};
constexpr size_t no_sequence = ~size_t{0};
enum class Odd : uint8_t { first, last };  // when to do the steps that are no whole chain_interval

// Lets sequences take turns, each as soon as there is room. begin(turn, stream) prepares one; advance(turns, streams,
// n, n_steps) moves n of them; finish(turn, stream) is called when no step is left. `next` gives the sequences, one
// after another, and no_sequence at the end.
template <class Next, class Begin, class Advance, class Finish>
void take_turns(const ChainModel& model, size_t most, size_t most_steps, Odd odd, Next next, Begin begin,
                Advance advance, Finish finish) {
  std::vector<ChainStream> streams(most);
  std::vector<ChainTurn> turns(most);
  for (size_t k = 0; k < most; k++) turns[k].slot = k;
  auto move_alone = [&](size_t k, size_t n_steps) {
    if (n_steps > 0) advance(&turns[k], &streams[k], 1, n_steps);
    turns[k].steps_left -= n_steps;
  };
  size_t n = 0;
  for (bool more = true;;) {
    while (more && n < most) {
      turns[n].sequence = next();
      more = turns[n].sequence != no_sequence;
      if (!more) break;
      turns[n].steps_left = model.length(turns[n].sequence) - 1;
      streams[n] = ChainStream{};
      begin(turns[n], streams[n]);
      if (odd == Odd::first) move_alone(n, turns[n].steps_left % chain_interval);
      n++;
    }
    if (n == 0) return;
    size_t steps = most_steps;
    for (size_t k = 0; k < n; k++) steps = turns[k].steps_left < steps ? turns[k].steps_left : steps;
    steps = steps / chain_interval * chain_interval;
    if (steps > 0) advance(turns.data(), streams.data(), n, steps);
    for (size_t k = n; k-- > 0;) {
      turns[k].steps_left -= steps;
      if (turns[k].steps_left >= chain_interval) continue;
      move_alone(k, turns[k].steps_left);
      finish(turns[k], streams[k]);
      n--;
      std::swap(turns[k], turns[n]);
      std::swap(streams[k], streams[n]);
    }
  }
}

}  // namespace tallybayes
