// Shared parts of the HMM drivers: the model in the layout of the loops, batches of sequences, and interleaved
// streams.
#pragma once

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "hmm/hmm.h"

namespace tallybayes {

// Working memory aligned to a cache line and not cleared. Large buffers request huge pages.
template <class T>
class Room {
 public:
  Room() = default;
  Room(Room&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  Room(const Room&) = delete;
  Room& operator=(Room&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Room& operator=(const Room&) = delete;
  ~Room() { std::free(data_); }
  // Allocates at least n elements; previous contents are lost if there was less.
  T* of(size_t n) {
    if (n > size_ || data_ == nullptr) {
      std::free(std::exchange(data_, nullptr));
      size_ = 0;
      n += n / 4;  // batches differ a little in size, and new memory is slow
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

// Rows of `pitch` numbers with their logarithms.
struct ChainTable {
  Aligned<double> plain, logs;
};

struct ChainModel {
  ChainInput input;
  size_t pitch;
  size_t width;  // the same for eight lanes: decisions by it are the same in every tier, and so is the order of sums
  ChainTable start, transition, turned, end, table;  // the last row of the table is that of a missing code
  double start_shift = 0.0, transition_shift = 0.0, end_shift = 0.0;  // subtracted from the logarithms before exp
  Vector level_shifts;                                                // the same for every level; empty: all 0
  bool every_move = true;  // every transition is possible, and not tiny
  bool clear = true;  // every possible transition is not tiny
  ChainMatrix plain;
  size_t n_values = 0;  // in the first panels, where there are many states
  struct Panels {
    std::vector<size_t> begin;
    std::vector<uint32_t> from;
    Aligned<double> values;
  };

  ChainModel(const ChainInput&, size_t lanes);
  const ChainMatrix& logs() const;  // computed at first use, by any thread
  size_t length(size_t sequence) const {
    return static_cast<size_t>(input.offsets[sequence + 1] - input.offsets[sequence]);
  }
  size_t first_step(size_t sequence) const { return static_cast<size_t>(input.offsets[sequence]); }
  double weight(size_t sequence) const { return input.weight ? input.weight[sequence] : 1.0; }
  // Whether there are many states: more sums than the registers of any tier hold.
  bool wide() const { return width > most_few_states; }
  // Number of interleaved sequences: the fewer vectors a step has, the longer its latency. With many states, several
  // are processed together.
  size_t most_streams() const { return wide() ? most_wide_streams : width <= 16 ? 8 : width <= 32 ? 4 : 2; }

 private:
  size_t lanes_;
  mutable ChainMatrix logs_{};
  mutable Panels panels_[4];
  mutable std::once_flag made_;
};

// Consecutive sequences whose working memory is allocated at the same time.
struct ChainBatch {
  size_t first, last;  // sequences
  size_t first_step, n_steps;
  size_t n_streams;  // that are interleaved: fewer than possible if the last sequences would then be processed alone
  size_t segment, n_segments;  // steps of a segment, a multiple of chain_block; 1: no sequence is split
};

// The batch that begins with this sequence: as many as fit into the cache, and more if only these can be interleaved.
ChainBatch next_batch(const ChainModel&, size_t sequence, size_t last);

// Splits the sequences into parts, for the threads and for summation; `n_sums` is the number of sums per part.
std::vector<size_t> chain_parts(const ChainModel&, size_t n_sums);
// Number of steps times their cost, in cells as choose_threads counts them.
double chain_cells(const ChainModel&);
// Number of threads that work on the same sequences, if this many are requested and `used` work on different ones.
size_t crew_size(const ChainModel&, size_t threads, size_t used);

// Σ at(k) with compensation of rounding errors at the end. Several partial sums, so that additions do not wait for
// each other.
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
enum class Odd : uint8_t { first, last };  // when the steps beyond whole chain_intervals are processed

// Interleaves sequences, each starting as soon as there is room. begin(turn, stream) prepares one; advance(turns,
// streams, n, n_steps) processes steps of n of them; finish(turn, stream) is called after the last step. `next`
// returns the sequences one after another, and no_sequence at the end; moves(sequence) is its number of steps.
// `together`: whether remaining steps of several sequences are also processed at once.
template <class Next, class Moves, class Begin, class Advance, class Finish>
void take_turns(bool together, size_t most, size_t most_steps, Odd odd, Next next, Moves moves, Begin begin,
                Advance advance, Finish finish) {
  std::vector<ChainStream> streams(most);
  std::vector<ChainTurn> turns(most);
  for (size_t k = 0; k < most; k++) turns[k].slot = k;
  auto swap = [&](size_t a, size_t b) {
    std::swap(turns[a], turns[b]);
    std::swap(streams[a], streams[b]);
  };
  auto move = [&](size_t k, size_t n, size_t n_steps) {
    if (n > 0 && n_steps > 0) advance(&turns[k], &streams[k], n, n_steps);
    for (size_t g = k; g < k + n; g++) turns[g].steps_left -= n_steps;
  };
  // From k to `last`: the remaining steps of each.
  auto move_odd = [&](size_t k, size_t last) {
    for (size_t n_odd = 1; n_odd < chain_interval; n_odd++) {
      const size_t before = k;
      for (size_t g = k; g < last; g++) {
        if (turns[g].steps_left % chain_interval == n_odd) swap(g, k++);
      }
      move(before, k - before, n_odd);
    }
  };
  size_t n = 0;
  for (bool more = true;;) {
    const size_t n_before = n;
    while (more && n < most) {
      turns[n].sequence = next();
      more = turns[n].sequence != no_sequence;
      if (!more) break;
      turns[n].steps_left = moves(turns[n].sequence);
      streams[n] = ChainStream{};
      begin(turns[n], streams[n]);
      if (odd == Odd::first && !together) move(n, 1, turns[n].steps_left % chain_interval);
      n++;
    }
    if (n == 0) return;
    if (odd == Odd::first && together) move_odd(n_before, n);
    size_t steps = most_steps;
    for (size_t k = 0; k < n; k++) steps = turns[k].steps_left < steps ? turns[k].steps_left : steps;
    steps = steps / chain_interval * chain_interval;
    move(0, n, steps);
    if (together) {
      size_t staying = 0;
      for (size_t k = 0; k < n; k++) {
        if (turns[k].steps_left >= chain_interval) swap(k, staying++);
      }
      move_odd(staying, n);
      for (; n > staying; n--) finish(turns[n - 1], streams[n - 1]);
      continue;
    }
    for (size_t k = n; k-- > 0;) {
      if (turns[k].steps_left >= chain_interval) continue;
      move(k, 1, turns[k].steps_left);
      finish(turns[k], streams[k]);
      swap(k, --n);
    }
  }
}

}  // namespace tallybayes
