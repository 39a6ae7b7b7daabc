// Threads that work on the same streams, each on some of the states.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "hmm/hmm_kernels.h"

namespace tallybayes {

class ChainCrew {
 public:
  // As many as the system can start, including the caller.
  explicit ChainCrew(size_t size);
  ~ChainCrew();
  ChainCrew(const ChainCrew&) = delete;
  ChainCrew& operator=(const ChainCrew&) = delete;

  // Runs work(team) on all threads, and returns when all are done. It must not throw.
  template <class Work>
  void run(Work work) {
    if (others_.empty()) return work(ChainTeam{});
    call([](void* what, const ChainTeam& team) { (*static_cast<Work*>(what))(team); }, &work);
  }

 private:
  using Call = void (*)(void*, const ChainTeam&);
  void call(Call call, void* what);
  void serve(size_t member);
  void wait();

  std::vector<std::thread> others_;
  size_t size_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t n_calls_ = 0, n_busy_ = 0;
  bool over_ = false;
  Call call_ = nullptr;
  void* what_ = nullptr;
  std::atomic<size_t> n_come_{0}, n_meetings_{0};
};

}  // namespace tallybayes
