// Small things the drivers share.
#include <algorithm>
#include <cmath>

#if defined(__linux__)
#include <sched.h>
#endif

#include "parallel.h"
#include "sums.h"

namespace tallybayes {

size_t available_threads() {
#if defined(__linux__)
  // The affinity mask, not the number of cores: containers and taskset narrow it.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

namespace {

// std::lgamma writes a global variable (signgam), which threads must not share.
double log_gamma(double x) {
#if defined(__unix__) || defined(__APPLE__)
  int sign;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

const double* make_log_factorials() {
  static double table[n_log_factorials];
  for (size_t x = 0; x < n_log_factorials; x++) table[x] = log_gamma(static_cast<double>(x) + 1.0);
  return table;
}

}  // namespace

const double* const log_factorial_table = make_log_factorials();

double log_gamma_plus_one(double x) { return log_gamma(x + 1.0); }

uint64_t read_bytes(const Kernels& kernels, Bytes bytes, size_t n_bytes, size_t threads) {
  const Grid grid(n_bytes, size_t{1} << 20);
  uint64_t total = 0;
  auto process = [&](uint64_t& sum, size_t part, Order&) {
    sum += kernels.sum_words(bytes + grid.first(part), grid.last(part) - grid.first(part));
    return true;
  };
  const size_t used = choose_threads(threads, grid.n_parts, static_cast<double>(n_bytes) / 16.0);
  run_parts(grid.n_parts, used, 1, [] { return uint64_t{0}; }, process, [&](uint64_t& sum) { total += sum; });
  return total;
}

}  // namespace tallybayes
