// Utilities shared by the drivers.
#include <algorithm>

#if defined(__linux__)
#include <sched.h>
#endif

#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

size_t available_threads() {
#if defined(__linux__)
  // The affinity mask instead of the number of cores: containers and taskset restrict it.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

namespace {

const double* make_log_factorials() {
  static double table[n_log_factorials];
  for (size_t x = 0; x < n_log_factorials; x++) table[x] = log_gamma_plus_one(static_cast<double>(x));
  return table;
}

}  // namespace

const double* const log_factorial_table = make_log_factorials();

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

namespace {

template <class T>
T read(Bytes p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

}  // namespace

double cell_at(const Column& column, size_t row) {
  Bytes p = column.at(row);
  switch (column.type) {
    case Type::boolean:
    case Type::uint8: return read<uint8_t>(p);
    case Type::int8: return read<int8_t>(p);
    case Type::int16: return read<int16_t>(p);
    case Type::uint16: return read<uint16_t>(p);
    case Type::int32: return read<int32_t>(p);
    case Type::uint32: return read<uint32_t>(p);
    case Type::int64: return static_cast<double>(read<int64_t>(p));
    case Type::uint64: return static_cast<double>(read<uint64_t>(p));
    case Type::float32: return static_cast<double>(read<float>(p));
    case Type::float64: break;
  }
  return read<double>(p);
}

uint64_t code_at(const Column& column, size_t row) {
  Bytes p = column.at(row);
  switch (size_of(column.type)) {
    case 1: return read<uint8_t>(p);
    case 2: return read<uint16_t>(p);
    case 4: return read<uint32_t>(p);
    default: return read<uint64_t>(p);
  }
}

}  // namespace tallybayes
