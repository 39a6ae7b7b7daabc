// E-step: chunks of rows are scored, shared among the classes and summed while they are in cache.
#include "mixture/mixture.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "core/parallel.h"
#include "core/soft_weights.h"

namespace tallybayes {

namespace {

constexpr size_t part_rows = 32 * mixture_rows;  // rows whose sums are added to those of the parts before
constexpr size_t product_bytes = 32 << 10;       // of products of columns that are stored at a time
constexpr size_t panel_pitch = mixture_rows + 4;  // not a multiple of 4 KiB: panels do not share cache sets

size_t tiles(size_t d) { return (d + scatter_tile - 1) / scatter_tile * scatter_tile; }
size_t length_width(size_t d) { return (d + length_block - 1) / length_block * length_block; }
size_t product_pitch(size_t d) { return whole_lines(d * (d + 1) / 2 + d + 1); }

bool in_place(const Table& table) {
  return table.row_major() && table.aligned() && table.type == Type::float64;
}

}  // namespace

size_t CodeBlock::n_levels() const { return std::accumulate(sizes.begin(), sizes.end(), size_t{0}); }

struct MixtureEM::Worker {
  std::vector<Aligned<double>> cells;  // of every Gaussian block, column by column, about the center
  std::vector<bool> missing;
  Aligned<double> scores;              // [class][row]; then responsibilities
  Aligned<double> turned;              // [row][class], padded
  Aligned<double> density, entropy;
  Aligned<double> rows;      // of a full block, row by row, unless they are read in place
  Aligned<double> panel, whitened, lengths, products, packed, packed_weighted, shares;
  std::vector<uint32_t> codes, numbers;
  std::vector<uint8_t> present;
  Vector sums, total;  // of the part; the weights of the classes in the chunk
  bool any_missing = false;
};

// Where the sums of every block start. Diagonal: the classes' weights in chunks without missing cells, then eight
// partial sums of weights, first and second moments for every class and column. Full: first and second moments.
void MixtureEM::reserve() {
  size_t at = n_classes + 2;
  gaussian_offset_.clear();
  code_offset_.clear();
  for (const GaussianBlock& block : gaussians) {
    gaussian_offset_.push_back(at);
    const size_t d = block.n_columns();
    if (!block.full || block.light) {
      at += n_classes + 24 * n_classes * d;
    } else {
      at += n_classes * (block.common ? product_pitch(d) : tiles(d) + tiles(d) * tiles(d));
    }
  }
  for (const CodeBlock& block : codes) {
    code_offset_.push_back(at);
    at += (block.n_levels() + block.sizes.size()) * padded_classes();
  }
  sums_.assign(at, 0.0);
}

bool MixtureEM::load_gaussians(Worker& worker, size_t first, size_t n) const {
  for (size_t b = 0; b < gaussians.size(); b++) {
    const GaussianBlock& block = gaussians[b];
    const size_t d = block.n_columns();
    double* cells = worker.cells[b].data();
    for (size_t j = 0; j < d; j += block_columns) {
      score_.load_columns(block.table, first, n, j, std::min(block_columns, d - j), cells + j * mixture_rows,
                          mixture_rows);
    }
    if (n < mixture_rows) {
      for (size_t j = 0; j < d; j++) {
        std::fill(cells + j * mixture_rows + n, cells + (j + 1) * mixture_rows, block.center[j]);
      }
    }
    worker.missing[b] = kernels_.center_cells(cells, d, block.center.data());
    if (worker.missing[b] && block.full) return false;
  }
  return true;
}

void MixtureEM::score_chunk(Worker& worker, size_t first, size_t n) const {
  double* scores = worker.scores.data();
  for (size_t k = 0; k < n_classes; k++) {
    std::fill(scores + k * mixture_rows, scores + (k + 1) * mixture_rows, classes.log_prior[k]);
  }
  for (size_t b = 0; b < gaussians.size(); b++) {
    const GaussianBlock& block = gaussians[b];
    const size_t d = block.n_columns();
    const double* cells = worker.cells[b].data();
    const size_t width = length_width(d);
    if (block.tied_full()) {
      kernels_.multiply_triangle(cells, width / length_block, block.packed[0].data(), worker.whitened.data());
      cells = worker.whitened.data();
    }
    if (!block.full || block.tied_full()) {
      for (size_t k = 0; k < n_classes; k++) {
        const NormalTerms terms{&block.factor[k * d], &block.shift[k * d], &block.norm[k * d]};
        kernels_.score_normals(cells, d, terms, worker.missing[b], scores + k * mixture_rows);
      }
      continue;
    }
    double* panel = worker.panel.data();
    std::fill(panel + d * length_panel, panel + width * length_panel, 0.0);
    for (size_t start = 0; start < n; start += length_panel) {
      for (size_t j = 0; j < d; j++) {
        const double* from = cells + j * mixture_rows + start;
        std::copy(from, from + length_panel, panel + j * length_panel);
      }
      for (size_t k = 0; k < n_classes; k++) {
        double* lengths = worker.lengths.data();
        kernels_.squared_lengths(panel, width / length_block, block.packed[k].data(), block.root_shift[k].data(),
                                 lengths);
        double* score = scores + k * mixture_rows + start;
        for (size_t i = 0; i < length_panel; i++) score[i] += block.log_norm[k] - 0.5 * lengths[i];
      }
    }
  }
  if (codes.empty()) return;
  const size_t pitch = padded_classes();
  double* by_row = worker.turned.data();
  std::fill(by_row, by_row + mixture_rows * pitch, 0.0);
  uint32_t* code = worker.codes.data();
  for (const CodeBlock& block : codes) {
    for (size_t j = 0; j < block.sizes.size(); j++, code += mixture_rows) {
      kernels_.load_codes(block.table.column(j), first, n, block.sizes[j], worker.present.data(), code);
      std::fill(code + n, code + mixture_rows, block.sizes[j]);
      for (size_t i = 0; i < n; i++) {
        const double* from = block.log_table[j].data() + code[i] * pitch;
        double* to = by_row + i * pitch;
        for (size_t k = 0; k < pitch; k++) to[k] += from[k];
      }
    }
  }
  score_.add_turned(by_row, pitch, mixture_rows, n_classes, scores, mixture_rows);
}

// Scores become responsibilities times weights. False if a row is impossible.
bool MixtureEM::share_chunk(Worker& worker, size_t first, size_t n, bool hard) const {
  double *scores = worker.scores.data(), *density = worker.density.data(), *entropy = worker.entropy.data();
  if (labels) {
    for (size_t i = 0; i < n; i++) {
      const int64_t label = labels[first + i];
      if (label < 0) continue;
      for (size_t k = 0; k < n_classes; k++) {
        if (k != static_cast<size_t>(label)) scores[k * mixture_rows + i] = -INFINITY;
      }
    }
  }
  if (hard) {
    for (size_t i = 0; i < n; i++) {
      size_t best = 0;
      for (size_t k = 1; k < n_classes; k++) {
        if (scores[k * mixture_rows + i] > scores[best * mixture_rows + i]) best = k;
      }
      density[i] = entropy[i] = 0.0;
      if (!(scores[best * mixture_rows + i] > -INFINITY)) return false;
      for (size_t k = 0; k < n_classes; k++) scores[k * mixture_rows + i] = k == best ? 1.0 : 0.0;
    }
  } else {
    kernels_.share_rows(scores, n_classes, density, entropy);
  }
  double likelihood[8] = {}, uncertainty[8] = {};
  for (size_t i = 0; i < n; i++) {
    const double weight = weights ? weights[first + i] : 1.0;
    likelihood[i % 8] += weight * density[i];
    uncertainty[i % 8] += weight * entropy[i];
  }
  auto total = [](const double* s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); };
  if (!std::isfinite(total(likelihood))) return false;
  worker.sums[n_classes] += total(likelihood);
  worker.sums[n_classes + 1] += total(uncertainty);
  for (size_t k = 0; k < n_classes; k++) {
    double* share = scores + k * mixture_rows;
    if (weights) {
      for (size_t i = 0; i < n; i++) share[i] *= weights[first + i];
    }
    std::fill(share + n, share + mixture_rows, 0.0);
    double parts[8] = {};
    for (size_t i = 0; i < mixture_rows; i += 8) {
      for (size_t lane = 0; lane < 8; lane++) parts[lane] += share[i + lane];
    }
    worker.total[k] = total(parts);
    worker.sums[k] += worker.total[k];
  }
  return true;
}

void MixtureEM::sum_chunk(Worker& worker, size_t first, size_t n) const {
  const double* shares = worker.scores.data();
  const size_t pitch = padded_classes();
  const bool by_row = !codes.empty() || std::any_of(gaussians.begin(), gaussians.end(), [](const GaussianBlock& block) {
    return block.full && block.common && !block.light;
  });
  double* turned = worker.turned.data();
  if (by_row) {
    std::fill(turned, turned + mixture_rows * pitch, 0.0);
    for (size_t k = 0; k < n_classes; k++) {
      for (size_t i = 0; i < mixture_rows; i++) turned[i * pitch + k] = shares[k * mixture_rows + i];
    }
  }
  for (size_t b = 0; b < gaussians.size(); b++) {
    const GaussianBlock& block = gaussians[b];
    const size_t d = block.n_columns(), cells = 8 * d;
    double* sums = worker.sums.data() + gaussian_offset_[b];
    if (block.light || (!block.full && block.common && !worker.missing[b])) {
      kernels_.sum_squares(worker.cells[b].data(), d, shares, n_classes, sums + n_classes + cells,
                           sums + n_classes + 2 * cells, 3 * cells);
      for (size_t k = 0; k < n_classes; k++) sums[k] += worker.total[k];
      continue;
    }
    if (!block.full) {
      for (size_t k = 0; k < n_classes; k++) {
        NormalTerms terms{&block.factor[k * d], &block.shift[k * d], &block.norm[k * d]};
        if (block.common) terms = {ones_.data(), zeros_.data(), zeros_.data()};
        double* of_class = sums + n_classes + 3 * k * cells;
        kernels_.sum_normals(worker.cells[b].data(), d, shares + k * mixture_rows, terms,
                             {worker.missing[b] ? of_class : nullptr, of_class + cells, of_class + 2 * cells});
        if (!worker.missing[b]) sums[k] += worker.total[k];
      }
      worker.any_missing = worker.any_missing || worker.missing[b];
      continue;
    }
    Bytes base = reinterpret_cast<Bytes>(worker.rows.data());
    ptrdiff_t stride = static_cast<ptrdiff_t>(d * sizeof(double));
    if (in_place(block.table)) {
      base = block.table.row(first);
      stride = block.table.row_stride;
    } else {
      kernels_.load_doubles(block.table, first, n, worker.rows.data(), d);
    }
    if (block.common) {
      const size_t width = d * (d + 1) / 2 + d + 1, product_row = product_pitch(d);
      const size_t step = std::clamp<size_t>(product_bytes / (product_row * sizeof(double)), 8, 64);
      for (size_t start = 0; start < n; start += step) {
        const SoftRows rows{base + static_cast<ptrdiff_t>(start) * stride, stride, std::min(step, n - start),
                            turned + start * pitch, pitch, 0};
        kernels_.write_product_cells(rows, d, block.center.data(), worker.products.data(), product_row);
        kernels_.sum_soft(rows.weights, pitch, worker.products.data(), product_row, rows.n_rows, n_classes, width,
                          sums);
      }
      continue;
    }
    const size_t tile_pitch = tiles(d);
    Vector about(d);
    for (size_t k = 0; k < n_classes; k++) {
      for (size_t j = 0; j < d; j++) about[j] = block.center[j] + block.mean[k * d + j];
      RowSet set{base, stride, worker.numbers.data(), 0, worker.shares.data(), 0};
      for (size_t i = 0; i < n; i++) {
        worker.numbers[set.n_rows] = static_cast<uint32_t>(i);
        worker.shares.data()[set.n_rows] = shares[k * mixture_rows + i];
        set.n_rows += shares[k * mixture_rows + i] != 0.0;
      }
      double* of_class = sums + k * (tile_pitch + tile_pitch * tile_pitch);
      kernels_.pack_rows(set, d, about.data(), panel_pitch, worker.packed.data(), worker.packed_weighted.data(),
                         of_class);
      kernels_.multiply_panels(worker.packed_weighted.data(), worker.packed.data(), set.n_rows, panel_pitch,
                               tile_pitch, of_class + tile_pitch);
    }
  }
  uint32_t* code = worker.codes.data();
  for (size_t b = 0; b < codes.size(); b++) {
    double* to = worker.sums.data() + code_offset_[b];
    for (const uint32_t size : codes[b].sizes) {
      kernels_.count_soft(code, mixture_rows, 1, turned, n, pitch, &to);
      to += (size + 1) * pitch;
      code += mixture_rows;
    }
  }
}

bool MixtureEM::any_light() const {
  return std::any_of(gaussians.begin(), gaussians.end(), [](const GaussianBlock& block) { return block.light; });
}

bool MixtureEM::expect(bool hard, bool light) {
  size_t widest = 0;
  for (GaussianBlock& block : gaussians) {
    // The variances of a start may be those of all rows, which do not show that classes are far from the center.
    block.common = block.common && !hard;
    block.light = light && block.tied_full() && block.common && !block.total.empty();
    widest = std::max(widest, block.n_columns());
  }
  ones_.assign(widest, 1.0);
  zeros_.assign(widest, 0.0);
  reserve();
  size_t most_full = 0, n_codes = 0;
  double work = 0.0;
  for (const GaussianBlock& block : gaussians) {
    most_full = block.full ? std::max(most_full, block.n_columns()) : most_full;
    work += static_cast<double>(block.light ? 3 * block.n_columns() : block.width());
  }
  for (const CodeBlock& block : codes) n_codes += block.sizes.size();
  work = (work + static_cast<double>(n_codes)) * static_cast<double>(n_rows) * static_cast<double>(n_classes) / 2.0;
  const Grid grid(n_rows, part_rows);
  auto make = [&] {
    Worker worker;
    for (const GaussianBlock& block : gaussians) {
      worker.cells.emplace_back(length_width(block.n_columns()) * mixture_rows);
    }
    worker.missing.assign(gaussians.size(), false);
    for (Aligned<double>* rows : {&worker.density, &worker.entropy}) rows->resize(mixture_rows);
    worker.scores.resize(n_classes * mixture_rows);
    worker.turned.resize(mixture_rows * padded_classes());
    const size_t width = length_width(most_full);
    worker.panel.resize(width * length_panel);
    worker.whitened.resize(width * mixture_rows);
    worker.lengths.resize(length_panel);
    worker.shares.resize(mixture_rows);
    worker.rows.resize(most_full * mixture_rows);
    worker.products.resize(most_full <= most_product_columns ? 65 * product_pitch(most_full) + 8 : 0);
    worker.packed.resize(tiles(most_full) * panel_pitch);
    worker.packed_weighted.resize(tiles(most_full) * panel_pitch);
    worker.codes.resize(n_codes * mixture_rows);
    worker.numbers.resize(mixture_rows);
    worker.present.assign(mixture_rows, 1);
    worker.total.resize(n_classes);
    worker.sums.resize(sums_.size());
    return worker;
  };
  auto process = [&](Worker& worker, size_t part, Order& order) {
    std::fill(worker.sums.begin(), worker.sums.end(), 0.0);
    for (size_t first = grid.first(part); first < grid.last(part); first += mixture_rows) {
      const size_t n = std::min(mixture_rows, grid.last(part) - first);
      if (!load_gaussians(worker, first, n)) return false;
      score_chunk(worker, first, n);
      if (!share_chunk(worker, first, n, hard)) return false;
      sum_chunk(worker, first, n);
    }
    return order.in_turn(0, part, [&] {
      for (size_t i = 0; i < sums_.size(); i++) sums_[i] += worker.sums[i];
    });
  };
  std::atomic<bool> any_missing{false};
  const size_t used = limit_threads(choose_threads(threads, grid.n_parts, work), 2 * sums_.size() * sizeof(double));
  const bool good = run_parts(grid.n_parts, used, 1, make, process, [&](Worker& worker) {
    if (worker.any_missing) any_missing = true;
  });
  any_missing_ = any_missing;
  return good;
}

GaussianSums MixtureEM::gaussian_sums(size_t b) const {
  const GaussianBlock& block = gaussians[b];
  const size_t d = block.n_columns(), width = block.width();
  const double* from = sums_.data() + gaussian_offset_[b];
  GaussianSums sums;
  sums.any_missing = any_missing_ && !block.full;
  sums.about.assign(n_classes * d, 0.0);
  sums.weight.resize(n_classes * (sums.any_missing ? d : 1));
  sums.first.resize(n_classes * d);
  sums.second.resize(n_classes * width);
  auto eight = [](const double* s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); };
  for (size_t k = 0; k < n_classes; k++) {
    if (!sums.any_missing) sums.weight[k] = sums_[k];
    if (!block.full || block.light) {
      const double* of_class = from + n_classes + 24 * k * d;
      for (size_t j = 0; j < d; j++) {
        const size_t cell = k * d + j;
        const double unit = block.common ? 1.0 : 1.0 / block.factor[cell];
        if (sums.any_missing) sums.weight[cell] = from[k] + eight(of_class + 8 * j);
        sums.about[cell] = block.common ? 0.0 : block.shift[cell] * unit;
        sums.first[cell] = eight(of_class + 8 * (d + j)) * unit;
        if (block.light) continue;
        sums.second[cell] = eight(of_class + 8 * (2 * d + j)) * unit * unit;
      }
      continue;
    }
    double* second = &sums.second[k * width];
    if (block.common) {
      const double* product = from + k * product_pitch(d);
      for (size_t i = 0; i < d; i++) {
        for (size_t j = i; j < d; j++) second[i * d + j] = second[j * d + i] = *product++;
      }
      std::copy(product, product + d, &sums.first[k * d]);
      continue;
    }
    const size_t pitch = tiles(d);
    const double* of_class = from + k * (pitch + pitch * pitch);
    std::copy(&block.mean[k * d], &block.mean[k * d] + d, &sums.about[k * d]);
    std::copy(of_class, of_class + d, &sums.first[k * d]);
    for (size_t i = 0; i < d; i++) {
      for (size_t j = i; j < d; j++) second[i * d + j] = second[j * d + i] = of_class[pitch + i * pitch + j];
    }
  }
  return sums;
}

Vector MixtureEM::code_sums(size_t b) const {
  const CodeBlock& block = codes[b];
  const size_t n_levels = block.n_levels(), pitch = padded_classes();
  const double* from = sums_.data() + code_offset_[b];
  Vector counts(n_classes * n_levels);
  size_t level = 0;
  for (const uint32_t size : block.sizes) {
    for (uint32_t code = 0; code < size; code++, level++, from += pitch) {
      for (size_t k = 0; k < n_classes; k++) counts[k * n_levels + level] = from[k];
    }
    from += pitch;  // the missing code
  }
  return counts;
}

}  // namespace tallybayes
