// Parallel work on a fixed grid of parts. The grid depends only on the shapes of the input, and results are added in
// the order of the parts, so the result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tallybayes {

size_t available_threads();

// Starting a thread costs as much as summing some hundred thousand cells; smaller jobs are single-threaded.
constexpr double worth_a_thread = 3e5;

inline size_t choose_threads(size_t wanted, size_t n_parts, double cells) {
  if (cells < worth_a_thread || n_parts <= 1 || wanted == 1) return 1;
  const size_t most = wanted ? wanted : available_threads();
  const size_t useful = static_cast<size_t>(cells / worth_a_thread) + 1;
  return std::max<size_t>(1, std::min({most, useful, n_parts}));
}

// Every thread has its own sums; if these are huge, fewer threads are used.
inline size_t limit_threads(size_t threads, size_t bytes_for_each) {
  constexpr size_t most_bytes = size_t{256} << 20;
  return std::min(threads, std::max<size_t>(1, most_bytes / std::max<size_t>(1, bytes_for_each)));
}

struct Grid {
  size_t n_rows, part_rows, n_parts;
  Grid(size_t rows, size_t rows_in_part)
      : n_rows(rows), part_rows(rows_in_part), n_parts((rows + rows_in_part - 1) / rows_in_part) {}
  size_t first(size_t part) const { return part * part_rows; }
  size_t last(size_t part) const { return std::min(n_rows, (part + 1) * part_rows); }
};

// At most 64 parts, each a whole number of blocks with enough rows to make merging its `n_sums` sums cheap.
inline Grid make_grid(size_t n_rows, size_t n_columns, size_t block_rows, size_t n_sums) {
  const size_t columns = std::max<size_t>(1, n_columns);
  size_t rows = std::max({n_rows / 64 + 1, 65536 / columns + 1, 16 * n_sums / columns + 1});
  rows = (rows + block_rows - 1) / block_rows * block_rows;
  return Grid(n_rows, rows);
}

// Ensures that every sequence (an output that parts are added to) receives the parts in order.
class Order {
 public:
  Order(size_t n_sequences, bool alone) : turns_(n_sequences, 0), alone_(alone) {}

  // Runs `merge` when all earlier parts of this sequence are merged. False: the work was stopped.
  template <class Merge>
  bool in_turn(size_t sequence, size_t part, Merge merge) {
    if (alone_) {
      merge();
      return true;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || turns_[sequence] == part; });
    if (stopped_) return false;
    lock.unlock();  // no other thread has this turn
    merge();
    lock.lock();
    turns_[sequence] = part + 1;
    changed_.notify_all();
    return true;
  }

  void stop(std::exception_ptr error = nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!stopped_) error_ = error;
    stopped_ = true;
    changed_.notify_all();
  }
  bool stopped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::vector<size_t> turns_;
  bool alone_;
  bool stopped_ = false;
  std::exception_ptr error_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Runs `body` on the calling thread and up to threads − 1 others; fewer if the system cannot start them.
template <class Body>
void run_threads(size_t threads, Body body) {
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.emplace_back(body);
  } catch (const std::system_error&) {
  }
  body();
  for (auto& other : others) other.join();
}

// Every thread creates one worker and takes parts in ascending order: process(worker, part, order) returns false to
// stop all work because of an invalid cell. `finish(worker)` runs once per worker, one at a time.
template <class MakeWorker, class Process, class Finish>
bool run_parts(size_t n_parts, size_t threads, size_t n_sequences, MakeWorker make, Process process, Finish finish) {
  Order order(n_sequences, threads <= 1);
  if (threads <= 1) {
    auto worker = make();
    for (size_t part = 0; part < n_parts; part++) {
      if (!process(worker, part, order)) return false;
    }
    finish(worker);
    return true;
  }
  std::atomic<size_t> next{0};
  std::mutex finishing;
  run_threads(threads, [&] {
    try {
      auto worker = make();
      for (size_t part; !order.stopped() && (part = next++) < n_parts;) {
        if (!process(worker, part, order)) return order.stop();
      }
      const std::lock_guard<std::mutex> lock(finishing);
      finish(worker);
    } catch (...) {
      order.stop(std::current_exception());
    }
  });
  order.rethrow();
  return !order.stopped();
}

}  // namespace tallybayes
