// Driver of the one-dependence scores: a few rows at a time, so that the terms of their columns stay in cache.
#include <algorithm>

#include "core/parallel.h"
#include "score/score.h"

namespace tallybayes {

namespace {

constexpr size_t chunk_rows = 256;
constexpr size_t part_rows = 2 * chunk_rows;

struct PairWorker {
  std::vector<uint32_t> entries;
  Aligned<double> terms;
  Aligned<double> scores;
};

}  // namespace

Vector score_pairs(const ScoreKernels& kernels, const Table& rows, const PairTable& pairs, size_t n_classes,
                   size_t threads) {
  const size_t n = rows.n_rows, d = pairs.n_columns, pitch = pairs.pitch;
  const size_t most_levels = d ? *std::max_element(pairs.sizes, pairs.sizes + d) : 0;
  const CodeColumns columns{pairs.sizes, pairs.offsets, 1, static_cast<uint32_t>(pitch), false};
  Vector out(n * n_classes);
  const Grid grid(n, part_rows);
  const double cells = static_cast<double>(n) * static_cast<double>(d * d * pitch) / 8.0;
  auto make = [&] {
    return PairWorker{std::vector<uint32_t>(chunk_rows * d), Aligned<double>((chunk_rows * d + most_levels) * pitch),
                      Aligned<double>(chunk_rows * pitch)};
  };
  auto process = [&](PairWorker& worker, size_t part, Order&) {
    for (size_t first = grid.first(part); first < grid.last(part); first += chunk_rows) {
      const size_t n_rows = std::min(chunk_rows, grid.last(part) - first);
      kernels.load_entries(rows, first, n_rows, columns, worker.entries.data());
      kernels.score_pairs(worker.entries.data(), n_rows, pairs, worker.terms.data(), worker.scores.data());
      for (size_t i = 0; i < n_rows; i++) {
        std::copy_n(worker.scores.data() + i * pitch, n_classes, out.data() + (first + i) * n_classes);
      }
    }
    return true;
  };
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, cells), 0, make, process, [](PairWorker&) {});
  return out;
}

}  // namespace tallybayes
