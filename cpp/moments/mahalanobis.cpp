// Driver of squared Mahalanobis distances of rows from several centers, each with its own triangular matrix.
#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr size_t part_rows = 16 * length_panel;

struct LengthWorker {
  Vector scratch;  // rows as doubles, unless they are read in place
  Vector panel;  // the centered rows of a panel, stored by column
  Vector lengths;  // distances of a panel for one class
};

// Blocks of four rows of a lower triangular matrix, [block][column][row], padded with zeros.
Vector pack_triangle(const double* root, size_t d, size_t n_blocks) {
  Vector packed;
  packed.reserve(length_block * length_block * n_blocks * (n_blocks + 1) / 2);
  for (size_t block = 0; block < n_blocks; block++) {
    for (size_t column = 0; column < (block + 1) * length_block; column++) {
      for (size_t q = 0; q < length_block; q++) {
        const size_t row = block * length_block + q;
        packed.push_back(row < d && column <= row ? root[row * d + column] : 0.0);
      }
    }
  }
  return packed;
}

}  // namespace

Vector squared_lengths(const Kernels& kernels, const Table& table, const double* center, const double* roots,
                       const double* shifts, size_t n_classes, size_t threads) {
  const size_t n = table.n_rows, d = table.n_columns, n_blocks = (d + length_block - 1) / length_block;
  const size_t width = n_blocks * length_block;
  std::vector<Vector> packed, shift(n_classes, Vector(width, 0.0));
  for (size_t k = 0; k < n_classes; k++) {
    packed.push_back(pack_triangle(roots + k * d * d, d, n_blocks));
    std::copy(shifts + k * d, shifts + (k + 1) * d, shift[k].begin());
  }
  Vector out(n * n_classes);
  const Grid grid(n, part_rows);
  const bool in_place = table.row_major() && table.aligned() && table.type == Type::float64;
  const double cells = static_cast<double>(n) * static_cast<double>(n_classes) * static_cast<double>(d * d) / 16.0;
  auto make = [&] {
    return LengthWorker{Vector(in_place ? 0 : part_rows * d), Vector(width * length_panel), Vector(length_panel)};
  };
  auto process = [&](LengthWorker& worker, size_t part, Order&) {
    const size_t first = grid.first(part), rows = grid.last(part) - first;
    if (!in_place) kernels.load_doubles(table, first, rows, worker.scratch.data(), d);
    for (size_t start = 0; start < rows; start += length_panel) {
      const size_t n_panel = std::min(length_panel, rows - start);
      for (size_t i = 0; i < n_panel; i++) {
        const auto* row = in_place ? reinterpret_cast<const double*>(table.row(first + start + i))
                                   : worker.scratch.data() + (start + i) * d;
        for (size_t j = 0; j < d; j++) worker.panel[j * length_panel + i] = row[j] - center[j];
      }
      for (size_t k = 0; k < n_classes; k++) {
        kernels.squared_lengths(worker.panel.data(), n_blocks, packed[k].data(), shift[k].data(),
                                worker.lengths.data());
        for (size_t i = 0; i < n_panel; i++) out[(first + start + i) * n_classes + k] = worker.lengths[i];
      }
    }
    return true;
  };
  run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, cells), 0, make, process, [](LengthWorker&) {});
  return out;
}

}  // namespace tallybayes
