#include "hmm/thread_team.h"

#include <system_error>

namespace tallybayes {

ChainCrew::ChainCrew(size_t size) {
  others_.reserve(size);
  try {
    while (others_.size() + 1 < size) {
      const size_t member = others_.size() + 1;
      others_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::system_error&) {
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  size_ = others_.size() + 1;
}

ChainCrew::~ChainCrew() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& other : others_) other.join();
}

void ChainCrew::call(Call call, void* what) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call_ = call;
    what_ = what;
    n_busy_ = size_ - 1;
    n_calls_++;
  }
  changed_.notify_all();
  const ChainTeam team{0, size_, this, [](void* crew) { static_cast<ChainCrew*>(crew)->wait(); }};
  call(what, team);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return n_busy_ == 0; });
}

void ChainCrew::serve(size_t member) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (size_t n_done = 0;;) {
    changed_.wait(lock, [&] { return over_ || n_calls_ != n_done; });
    if (over_) return;
    n_done = n_calls_;
    const Call call = call_;
    void* what = what_;
    const ChainTeam team{member, size_, this, [](void* crew) { static_cast<ChainCrew*>(crew)->wait(); }};
    lock.unlock();
    call(what, team);
    lock.lock();
    if (--n_busy_ == 0) changed_.notify_all();
  }
}

// A step takes some microseconds, so threads wait actively; if there are more threads than cores, they yield.
void ChainCrew::wait() {
  const size_t meeting = n_meetings_.load(std::memory_order_acquire);
  if (n_come_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    n_come_.store(0, std::memory_order_relaxed);
    n_meetings_.store(meeting + 1, std::memory_order_release);
    return;
  }
  for (size_t k = 0; n_meetings_.load(std::memory_order_acquire) == meeting; k++) {
    if (k < 2000) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace tallybayes
