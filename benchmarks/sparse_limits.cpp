// The least that counting and scoring sparse rows costs on a machine, in nanoseconds of processor time per stored entry.
// 200,000 rows of about 100 words out of 100,000, frequencies as in text; float64 values, int32 indices, 20 classes.
// Build and run: g++ -O3 -march=native -o sparse_limits benchmarks/sparse_limits.cpp && ./sparse_limits [uniform]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

static double nanoseconds(size_t n_entries, const std::function<void()>& work) {
  double best = 1e9;
  for (int k = 0; k < 7; k++) {
    timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    work();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    best = std::min(best, 1e9 * double(to.tv_sec - from.tv_sec) + double(to.tv_nsec - from.tv_nsec));
  }
  return best / double(n_entries);
}

int main(int count, char**) {
  constexpr size_t n_rows = 200'000, n_words = 100'000, n_classes = 20, line = 32, ahead = 32;
  const bool uniform = count > 1;
  std::mt19937_64 random(1);
  std::poisson_distribution<int> lengths(uniform ? 102 : 130);
  std::vector<double> share(n_words);
  for (size_t w = 0; w < n_words; w++) share[w] = (w ? share[w - 1] : 0.0) + (uniform ? 1.0 : 1.0 / double(w + 1));
  std::uniform_real_distribution<double> draws(0.0, share.back());
  std::vector<int32_t> indices, row;
  std::vector<double> values;
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < n_rows; i++) {
    row.resize(size_t(lengths(random)));
    for (auto& w : row) w = int32_t(std::lower_bound(share.begin(), share.end() - 1, draws(random)) - share.begin());
    std::sort(row.begin(), row.end());
    for (size_t k = 0; k < row.size(); k++) {
      if (k && row[k] == row[k - 1]) {
        values.back()++;
      } else {
        indices.push_back(row[k]), values.push_back(1.0);
      }
    }
    starts.push_back(indices.size());
  }
  const size_t n = indices.size();
  indices.resize(n + ahead);
  std::vector<std::vector<size_t>> rows(n_classes);
  for (size_t i = 0; i < n_rows; i++) rows[random() % n_classes].push_back(i);
  std::vector<double> counts(n_classes * n_words);
  std::vector<uint16_t> weights(n_words * line);
  volatile uint64_t sink = 0;

  std::printf("%zu entries\n", n);
  std::printf("read values and indices                      %.2f\n", nanoseconds(n, [&] {
    uint64_t words = 0, bits = 0;
    for (size_t k = 0; k < n; k++) words += uint32_t(indices[k]);
    const auto* raw = reinterpret_cast<const uint64_t*>(values.data());
    for (size_t k = 0; k < n; k++) bits += raw[k];
    sink = words + bits;
  }));
  std::printf("fit: add values to float64 sums of a class   %.2f\n", nanoseconds(n, [&] {
    for (size_t c = 0; c < n_classes; c++) {
      double* sums = counts.data() + c * n_words;
      for (size_t r = 0; r < rows[c].size(); r++) {
        const size_t next = rows[c][std::min(r + 3, rows[c].size() - 1)];
        for (size_t k = starts[next]; k < starts[next + 1]; k += 8) {
          __builtin_prefetch(&values[k]), __builtin_prefetch(&indices[k]);
        }
        for (size_t k = starts[rows[c][r]]; k < starts[rows[c][r] + 1]; k++) sums[indices[k]] += values[k];
      }
    }
  }));
  std::printf("predict: read one number of a word's weights %.2f\n", nanoseconds(n, [&] {
    uint64_t sum = 0;
    for (size_t k = 0; k < n; k++) {
      __builtin_prefetch(&weights[size_t(indices[k + ahead]) * line]);
      sum += weights[size_t(indices[k]) * line];
    }
    sink = sum;
  }));
}
