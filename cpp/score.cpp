// Drives the scoring of rows, chunk by chunk.
#include "score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "parallel.h"
#include "score_gather.h"

namespace tallybayes {

namespace {

constexpr size_t codes_in_chunk = 65536;    // 256 kB of positions in the tables
constexpr size_t scores_in_chunk = 16384;   // 128 kB of sums
constexpr size_t repeated_codes = 512;      // short rows are looked at together, as many as make a run of this length
constexpr size_t rows_in_part = 1024;
constexpr size_t gathered_bytes = 262144;   // of chosen rows, copied next to each other

// The limits of the codes of one call: they depend on the types of its columns.
struct CodeLimits {
  std::vector<uint32_t> limits, offsets;
  CodeColumns columns;

  CodeLimits(const ScoreFactor& factor, const Table& table, size_t n_rows) {
    const size_t n = factor.n_columns;
    const size_t repeated = std::clamp<size_t>(repeated_codes / std::max<size_t>(n, 1), 1, std::max<size_t>(n_rows, 1));
    limits.reserve(n * repeated);
    offsets.reserve(n * repeated);
    for (size_t j = 0; j < n; j++) {
      limits.push_back(static_cast<uint32_t>(code_limit(table.column(j).type, factor.sizes[j])));
      offsets.push_back(factor.offsets[j]);
    }
    for (size_t i = n; i < n * repeated; i++) {
      limits.push_back(limits[i - n]);
      offsets.push_back(offsets[i - n]);
    }
    columns = {limits.data(), offsets.data(), repeated, static_cast<uint32_t>(factor.pitch), factor.refuse};
  }
  CodeLimits(const CodeLimits&) = delete;
};

struct Call {
  const Scorer& scorer;
  const ScoreKernels& kernels;
  const std::vector<ScoreBlock>& blocks;
  const Chosen& chosen;
  const Scores& out;
  std::vector<std::optional<CodeLimits>> limits;
  size_t chunk_rows, pitch;
  bool guess;  // argmax of one sparse factor
};

bool all_bytes(const Table& table) {
  for (size_t j = 0; j < (table.separate ? table.n_columns : 1); j++) {
    if (size_of(table.separate ? table.columns[j].type : table.type) != 1) return false;
  }
  return true;
}

size_t bit_pitch(const ScoreFactor& factor) { return (factor.n_columns + 63) / 64 * 8; }

bool by_bits(const ScoreFactor& factor, const ScoreBlock& block) {
  return !factor.bit_table.empty() && all_bytes(block.table);
}

bool by_rows(FactorKind kind) {
  return kind == FactorKind::codes || kind == FactorKind::sparse || kind == FactorKind::terms;
}

struct Worker {
  Aligned<double> scores, cells, sum, norm, exponent, rows, density, turned;
  Aligned<float> small;
  std::vector<uint32_t> entries;
  std::vector<uint8_t> bits, bytes;
  std::vector<Extent> extents;
  std::vector<int64_t> guesses;
  std::vector<std::optional<GatheredTable>> gathered;
  std::vector<Table> tables;  // of every factor, with the rows at hand

  explicit Worker(const Call& call) {
    const size_t n_classes = call.scorer.n_classes(), n_scores = n_classes * call.pitch;
    size_t n_entries = 0, n_cells = 0, n_looked_up = 0;
    bool dense = false, student = false;
    for (size_t f = 0; f < call.blocks.size(); f++) {
      const ScoreFactor& factor = call.scorer.factors()[f];
      if (by_bits(factor, call.blocks[f])) {
        n_looked_up = std::max(n_looked_up, call.chunk_rows * factor.pitch);
        bits.resize(std::max(bits.size(), call.chunk_rows * bit_pitch(factor)));
        if (!call.blocks[f].table.row_major()) {
          bytes.resize(std::max(bytes.size(), call.chunk_rows * factor.n_columns));
        }
      } else if (by_rows(factor.kind)) {
        n_looked_up = std::max(n_looked_up, call.chunk_rows * factor.pitch);
        if (factor.kind == FactorKind::codes) n_entries = std::max(n_entries, call.chunk_rows * factor.n_columns);
      } else {
        n_cells = std::max(n_cells, std::min(factor.n_columns, block_columns) * call.pitch);
        dense = true;
        student |= factor.kind == FactorKind::student;
      }
    }
    for (const ScoreBlock& block : call.blocks) {
      tables.push_back(block.table);
      gathered.emplace_back();
      if (call.chosen.rows && block.table.n_columns) gathered.back().emplace(block.table, call.chunk_rows);
    }
    scores.resize(n_scores);
    density.resize(call.out.posterior ? call.pitch : 0);
    turned.resize(call.out.posterior && call.chosen.rows ? n_scores : 0);
    cells.resize(n_cells);
    sum.resize(dense ? n_scores : 0);
    norm.resize(dense ? n_scores : 0);
    exponent.resize(student ? n_scores : 0);
    rows.resize(n_looked_up);
    entries.resize(n_entries);
    if (call.guess) {
      small.resize(call.scorer.factors()[0].pitch);
      guesses.resize(call.chunk_rows);
    }
  }
};

// Σ power · log(1 + t) of one row and class, where the product of the 1 + t is out of range.
double careful_student(const ScoreFactor& factor, const Table& table, size_t row, size_t n_classes, size_t g,
                       size_t class_in_group) {
  const ClassGroup group = class_group(n_classes, g);
  const bool by_column = factor.kind == FactorKind::student_by_column;
  const double* p = factor.parameters.data() + factor.n_parameters * factor.n_columns * group.first + class_in_group;
  double sum = 0.0;
  for (size_t j = 0; j < factor.n_columns; j++, p += factor.n_parameters * group.n) {
    const double x = cell_at(table.column(j), row);
    if (std::isnan(x)) continue;
    const double z = std::fabs((x - p[0]) * p[group.n]);
    const double log_term = z < 1e150 ? std::log1p(z * z) : 2.0 * std::log(z);
    const double power = by_column ? p[2 * group.n] : factor.power[group.first + class_in_group];
    if (power != 0.0) sum += power * log_term;
  }
  return sum;
}

void finish_student(const ScoreFactor& factor, const Table& table, size_t first, size_t n, const Call& call,
                    Worker& worker) {
  const size_t n_classes = call.scorer.n_classes();
  const bool by_column = factor.kind == FactorKind::student_by_column;
  const size_t n_padded = (n + row_pad - 1) / row_pad * row_pad;
  for (size_t g = 0; g < class_groups(n_classes); g++) {
    const ClassGroup group = class_group(n_classes, g);
    for (size_t c = 0; c < group.n; c++) {
      const size_t k = group.first + c;
      double* sum = worker.sum.data() + k * call.pitch;
      if (!by_column) {
        call.kernels.log_products(sum, worker.exponent.data() + k * call.pitch, n_padded);
        for (size_t i = 0; i < n; i++) sum[i] *= factor.power[k];
      }
      double probe = 0.0;
      for (size_t i = 0; i < n; i++) probe += sum[i] - sum[i];
      if (probe != 0.0) {
        for (size_t i = 0; i < n; i++) {
          if (!std::isfinite(sum[i])) sum[i] = careful_student(factor, table, first + i, n_classes, g, c);
        }
      }
      for (size_t i = 0; i < n; i++) sum[i] = -sum[i];
    }
  }
}

// The next block of columns of the same rows, or the first block of the next chunk.
Ahead cells_ahead(const Table& table, size_t first, size_t n, size_t column) {
  Ahead ahead;
  const size_t next = column + block_columns;
  const bool same_rows = next < table.n_columns;
  const size_t row = same_rows ? first : first + n, start = same_rows ? next : 0;
  if (table.separate || row >= table.n_rows) return ahead;
  const size_t size = size_of(table.type);
  ahead.cells = table.row(row) + static_cast<ptrdiff_t>(start) * table.column_stride;
  ahead.row_stride = table.row_stride;
  ahead.column_stride = table.column_stride;
  ahead.n_rows = std::min(n, table.n_rows - row);
  if (table.row_major()) ahead.row_bytes = std::min(block_columns, table.n_columns - start) * size;
  if (!table.row_major() && table.row_stride != static_cast<ptrdiff_t>(size)) ahead.n_rows = 0;
  return ahead;
}

bool add_dense(const ScoreFactor& factor, const Table& table, size_t first, size_t n, const Call& call,
               Worker& worker) {
  const ScoreKernels& kernels = call.kernels;
  const size_t n_classes = factor.n_classes, pitch = call.pitch;
  std::fill_n(worker.sum.data(), n_classes * pitch, 0.0);
  if (factor.kind == FactorKind::student) std::fill_n(worker.exponent.data(), n_classes * pitch, 0.0);
  const size_t n_blocks = (factor.n_columns + block_columns - 1) / block_columns;
  bool any_missing = false;
  for (size_t block = 0; block < n_blocks; block++) {
    const size_t column = block * block_columns;
    DenseWork work{};
    work.cells = worker.cells.data();
    work.pitch = pitch;
    work.n_rows = n;
    work.n_columns = std::min(block_columns, factor.n_columns - column);
    kernels.load_columns(table, first, n, column, work.n_columns, worker.cells.data(), pitch);
    const Outcome outcome = kernels.examine(work.cells, pitch, n, work.n_columns, factor.check);
    if (outcome == Outcome::bad) return false;
    work.missing = outcome == Outcome::missing;
    if (work.missing && !any_missing) {
      any_missing = true;
      const double* before = factor.norm_before.data() + block * n_classes;
      for (size_t k = 0; k < n_classes; k++) std::fill_n(worker.norm.data() + k * pitch, pitch, before[k]);
    }
    for (size_t g = 0; g < class_groups(n_classes); g++) {
      const ClassGroup group = class_group(n_classes, g);
      const size_t before = factor.n_columns * group.first + column * group.n;
      work.n_classes = group.n;
      work.norms = factor.norms.data() + before;
      work.parameters = factor.parameters.data() + factor.n_parameters * before;
      work.sum = worker.sum.data() + group.first * pitch;
      work.norm = worker.norm.data() + group.first * pitch;
      work.exponent = worker.exponent.data() + (factor.kind == FactorKind::student ? group.first * pitch : 0);
      if (any_missing) kernels.add_norms(work);
      work.ahead = g == 0 ? cells_ahead(table, first, n, column) : Ahead{};
      switch (factor.kind) {
        case FactorKind::linear: kernels.add_linear(work); break;
        case FactorKind::normal: kernels.add_normal(work); break;
        case FactorKind::student: kernels.add_student(work); break;
        case FactorKind::left_out: kernels.add_left_out(work); break;
        default: kernels.add_student_by_column(work);
      }
    }
  }
  if (factor.kind == FactorKind::student || factor.kind == FactorKind::student_by_column) {
    finish_student(factor, table, first, n, call, worker);
  }
  const double* total = factor.norm_before.data() + n_blocks * n_classes;
  for (size_t k = 0; k < n_classes; k++) {
    double* score = worker.scores.data() + (factor.first_class + k) * pitch;
    const double *sum = worker.sum.data() + k * pitch, *norm = worker.norm.data() + k * pitch;
    if (any_missing) {
      for (size_t i = 0; i < n; i++) score[i] += norm[i] + sum[i];
    } else {
      for (size_t i = 0; i < n; i++) score[i] += total[k] + sum[i];
    }
  }
  return true;
}

bool make_chunk(const ScoreFactor& factor, const Sparse& matrix, const Chosen& chosen, size_t first, size_t n,
                std::vector<Extent>& extents, SparseChunk& chunk) {
  extents.resize(n);
  for (size_t i = 0; i < n; i++) {
    const size_t row = chosen.rows ? static_cast<size_t>(chosen.rows[first + i]) : first + i;
    extents[i] = {entry_at(matrix.indptr, row), entry_at(matrix.indptr, row + 1)};
    if (extents[i].start < 0 || extents[i].stop < extents[i].start ||
        extents[i].stop > static_cast<int64_t>(matrix.n_entries)) {
      return false;
    }
  }
  chunk = {extents.data(), n, matrix.indices.data, matrix.indices.type == Type::int64, matrix.data, matrix.n_columns,
           matrix.n_entries, factor.check, factor.skip_zero};
  return true;
}

// `first`: of the rows in the call's order, `start`: of the same rows in the worker's tables.
bool add_factor(size_t f, size_t first, size_t start, size_t n, const Call& call, Worker& worker) {
  const ScoreFactor& factor = call.scorer.factors()[f];
  const ScoreBlock& block = call.blocks[f];
  const Table& table = worker.tables[f];
  const size_t n_classes = call.scorer.n_classes();
  if (factor.kind == FactorKind::codes) {
    if (!call.kernels.load_entries(table, start, n, call.limits[f]->columns, worker.entries.data())) return false;
    call.kernels.sum_entries(worker.entries.data(), n, factor.n_columns, factor.table.data(), factor.pitch,
                             worker.rows.data());
  } else if (factor.kind == FactorKind::sparse) {
    SparseChunk chunk;
    if (!make_chunk(factor, block.sparse, call.chosen, first, n, worker.extents, chunk)) return false;
    if (!call.kernels.sum_weights(chunk, factor.table.data(), factor.pitch, worker.rows.data())) return false;
  } else if (factor.kind == FactorKind::terms) {
    for (size_t i = 0; i < n; i++) {
      std::memcpy(worker.rows.data() + i * factor.pitch, table.row(start + i), n_classes * sizeof(double));
    }
  } else if (by_bits(factor, block)) {
    const size_t pitch = bit_pitch(factor), n_bytes = (factor.n_columns + 7) / 8;
    if (!call.kernels.load_bits(table, start, n, worker.bits.data(), pitch, worker.bytes.data())) return false;
    const double* total = factor.norm_before.data() + factor.norm_before.size() - n_classes;
    std::fill_n(worker.rows.data(), n * factor.pitch, 0.0);
    for (size_t i = 0; i < n; i++) std::copy_n(total, n_classes, worker.rows.data() + i * factor.pitch);
    call.kernels.sum_bits(worker.bits.data(), pitch, n, n_bytes, factor.bit_table.data(), factor.pitch,
                          worker.rows.data());
  } else {
    return add_dense(factor, table, start, n, call, worker);
  }
  call.kernels.add_turned(worker.rows.data(), factor.pitch, n, n_classes, worker.scores.data(), call.pitch);
  return true;
}

// The posterior and the density of a chunk, where they belong.
void write_posterior(size_t first, size_t n, const Call& call, Worker& worker) {
  const size_t n_classes = call.scorer.n_classes();
  const Scores& out = call.out;
  call.kernels.normalise(worker.scores.data(), call.pitch, n, n_classes, out.log_prior, worker.density.data());
  if (!call.chosen.rows) {
    call.kernels.turn_scores(worker.scores.data(), call.pitch, n, n_classes, out.posterior + first * n_classes);
    std::copy_n(worker.density.data(), n, out.density + first);
    return;
  }
  call.kernels.turn_scores(worker.scores.data(), call.pitch, n, n_classes, worker.turned.data());
  for (size_t i = 0; i < n; i++) {
    const size_t row = static_cast<size_t>(call.chosen.rows[first + i]);
    std::copy_n(worker.turned.data() + i * n_classes, n_classes, out.posterior + row * n_classes);
    out.density[row] = worker.density.data()[i];
  }
}

// Asks for the places of the results of chosen rows, which lie apart, before they are worked out.
void prefetch_results(const int64_t* rows, size_t n, size_t n_classes, const Scores& out) {
  for (size_t i = 0; i < n; i++) {
    const size_t row = static_cast<size_t>(rows[i]);
    const double* at = out.posterior + row * n_classes;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + n_classes - 1, 1);
    __builtin_prefetch(out.density + row, 1);
  }
}

bool score_chunk(size_t first, size_t n, size_t n_ahead, const Scores& out, const Call& call, Worker& worker) {
  const size_t n_classes = call.scorer.n_classes();
  for (size_t k = 0; k < n_classes; k++) {
    std::fill_n(worker.scores.data() + k * call.pitch, call.pitch, call.scorer.start()[k]);
  }
  const int64_t* rows = call.chosen.rows;
  if (rows && out.posterior) prefetch_results(rows + first, n, n_classes, out);
  for (size_t f = 0; f < call.blocks.size(); f++) {
    if (worker.gathered[f]) worker.tables[f] = worker.gathered[f]->take(rows + first, n, n_ahead);
    if (!add_factor(f, first, rows ? 0 : first, n, call, worker)) return false;
  }
  if (out.best) call.kernels.best_classes(worker.scores.data(), call.pitch, n, n_classes, out.best);
  if (out.joint) call.kernels.turn_scores(worker.scores.data(), call.pitch, n, n_classes, out.joint);
  if (out.posterior) write_posterior(first, n, call, worker);
  return true;
}

// Roughly first; the rows whose best class that leaves in doubt again in float64.
bool guess_chunk(size_t first, size_t n, int64_t* best, const Call& call, Worker& worker) {
  const ScoreFactor& factor = call.scorer.factors()[0];
  SparseChunk chunk;
  if (!make_chunk(factor, call.blocks[0].sparse, call.chosen, first, n, worker.extents, chunk)) return false;
  if (!call.kernels.guess_best(chunk, factor.small_start.data(), factor.small_table.data(), factor.small_pitch,
                               call.scorer.n_classes(), factor.largest, worker.small.data(), best)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (best[i] >= 0) continue;
    Scores one;
    one.best = best + i;
    if (!score_chunk(first + i, 1, 0, one, call, worker)) return false;
  }
  return true;
}

double work_of(const ScoreFactor& factor, const ScoreBlock& block, size_t n_rows, size_t n_classes) {
  double cells = static_cast<double>(n_rows) * static_cast<double>(factor.n_columns);
  if (factor.kind == FactorKind::sparse) {
    cells = static_cast<double>(n_rows) / static_cast<double>(block.sparse.n_rows) *
            static_cast<double>(block.sparse.n_entries);
  }
  return cells * std::max(1.0, static_cast<double>(n_classes) / 8.0);
}

}  // namespace

bool Scorer::score(const std::vector<ScoreBlock>& blocks, const Chosen& chosen, size_t threads,
                   const Scores& out) const {
  const size_t n_rows = chosen.n_rows;
  if (n_rows == 0) return true;
  size_t most_codes = 1, row_bytes = 1;
  double work = static_cast<double>(n_rows) * static_cast<double>(n_classes()) / 8.0;
  for (size_t f = 0; f < blocks.size(); f++) {
    if (factors_[f].kind == FactorKind::codes) most_codes = std::max(most_codes, factors_[f].n_columns);
    work += work_of(factors_[f], blocks[f], n_rows, n_classes());
    for (size_t j = 0; chosen.rows && j < blocks[f].table.n_columns; j++) {
      row_bytes += size_of(blocks[f].table.column(j).type);
    }
  }
  const size_t fitting =
      std::min({codes_in_chunk / most_codes, scores_in_chunk / n_classes(), gathered_bytes / row_bytes}) / row_pad *
      row_pad;
  Call call{*this, kernels_, blocks, chosen, out, {}, 0, 0, false};
  call.chunk_rows = std::min(std::clamp(fitting, row_pad, most_chunk_rows), n_rows);
  // Not a power of two, which would put the columns of a block into the same few places of the cache.
  call.pitch = (call.chunk_rows + row_pad - 1) / row_pad * row_pad + row_pad / 2;
  call.guess = out.best && factors_.size() == 1 && !factors_[0].small_table.empty();
  call.limits = std::vector<std::optional<CodeLimits>>(blocks.size());
  for (size_t f = 0; f < blocks.size(); f++) {
    if (factors_[f].kind == FactorKind::codes) call.limits[f].emplace(factors_[f], blocks[f].table, call.chunk_rows);
  }

  const Grid grid(n_rows, std::max(rows_in_part / call.chunk_rows, size_t{1}) * call.chunk_rows);
  auto process = [&](Worker& worker, size_t part, Order&) {
    const size_t last = grid.last(part);
    for (size_t first = grid.first(part); first < last; first += call.chunk_rows) {
      const size_t n = std::min(call.chunk_rows, last - first);
      Scores here;
      if (out.best) here.best = out.best + first;
      if (out.joint) here.joint = out.joint + first * n_classes();
      here.posterior = out.posterior;
      here.density = out.density;
      const bool good = call.guess ? guess_chunk(first, n, here.best, call, worker)
                                   : score_chunk(first, n, std::min(n, last - first - n), here, call, worker);
      if (!good) return false;
    }
    return true;
  };
  return run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, work), 1, [&] { return Worker(call); }, process,
                   [](Worker&) {});
}

}  // namespace tallybayes
