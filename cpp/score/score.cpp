// Driver of the scoring of rows, chunk by chunk.
#include "score/score_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/elementary.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

constexpr size_t codes_in_chunk = 65536;    // 256 kB of positions in the tables
constexpr size_t scores_in_chunk = 16384;   // 128 kB of sums
constexpr size_t rows_in_part = 1024;
constexpr size_t rows_of_all_parts = 8192;  // number of rows from which every scorer selects its own; results stay in cache
constexpr size_t gathered_bytes = 262144;  // of selected rows, which are copied next to each other

// Σ power · log(1 + t) of one row and class, for products of the 1 + t that are out of range.
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
    const double log_term = z < 1e150 ? log_one_plus(z * z) : 2.0 * natural_log(z);
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

bool make_chunk(const ScoreFactor& factor, const Sparse& matrix, const Piece& piece, std::vector<Extent>& extents,
                SparseChunk& chunk) {
  const size_t n = piece.n;
  extents.resize(n);
  for (size_t i = 0; i < n; i++) {
    const size_t row = piece.row(i);
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

bool add_factor(size_t f, const Piece& piece, const Call& call, Worker& worker) {
  const ScoreFactor& factor = call.scorer.factors()[f];
  const ScoreBlock& block = call.blocks[f];
  const Table& table = worker.tables[f];
  const size_t n_classes = call.scorer.n_classes(), start = piece.start(), n = piece.n;
  if (factor.kind == FactorKind::codes) {
    if (!call.kernels.load_entries(table, start, n, call.limits[f]->columns, worker.entries.data())) return false;
    call.kernels.sum_entries(worker.entries.data(), n, factor.n_columns, factor.table.data(), factor.pitch,
                             worker.rows.data());
  } else if (factor.kind == FactorKind::sparse) {
    SparseChunk chunk;
    if (!make_chunk(factor, block.sparse, piece, worker.extents, chunk)) return false;
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

// Writes the posterior and the density of some rows.
void write_posterior(const Piece& piece, const Call& call, Worker& worker) {
  const size_t n_classes = call.scorer.n_classes(), n = piece.n;
  const Scores& out = call.out;
  call.kernels.normalize(worker.scores.data(), call.pitch, n, n_classes, out.log_prior, worker.density.data());
  if (!piece.rows) {
    call.kernels.turn_scores(worker.scores.data(), call.pitch, n, n_classes, out.posterior + piece.first * n_classes);
    std::copy_n(worker.density.data(), n, out.density + piece.first);
    return;
  }
  call.kernels.turn_scores(worker.scores.data(), call.pitch, n, n_classes, worker.turned.data());
  const double *from = worker.turned.data(), *density = worker.density.data();
  for (size_t i = 0; i < n; i++, from += n_classes) {
    const size_t row = piece.row(i);
    double* to = out.posterior + row * n_classes;
    for (size_t k = 0; k < n_classes; k++) to[k] = from[k];
    out.density[row] = density[i];
  }
}

bool score_piece(const Piece& piece, const Call& call, Worker& worker) {
  const size_t n_classes = call.scorer.n_classes();
  for (size_t k = 0; k < n_classes; k++) {
    std::fill_n(worker.scores.data() + k * call.pitch, call.pitch, call.scorer.start()[k]);
  }
  for (size_t f = 0; f < call.blocks.size(); f++) {
    if (worker.gathered[f]) worker.tables[f] = worker.gathered[f]->take(piece.rows, piece.n, piece.n_ahead);
    if (!add_factor(f, piece, call, worker)) return false;
  }
  const Scores& out = call.out;
  if (out.best) call.kernels.best_classes(worker.scores.data(), call.pitch, piece.n, n_classes, out.best + piece.first);
  if (out.joint) {
    call.kernels.turn_scores(worker.scores.data(), call.pitch, piece.n, n_classes, out.joint + piece.first * n_classes);
  }
  if (out.posterior) write_posterior(piece, call, worker);
  return true;
}

// First in 16-bit and 32-bit floats; rows whose best class is then uncertain are repeated in float64.
bool guess_piece(const Piece& piece, const Call& call, Worker& worker) {
  const ScoreFactor& factor = call.scorer.factors()[0];
  int64_t* best = call.out.best + piece.first;
  SparseChunk chunk;
  if (!make_chunk(factor, call.blocks[0].sparse, piece, worker.extents, chunk)) return false;
  if (!call.kernels.guess_best(chunk, factor.small_start.data(), factor.small_table.data(), factor.small_pitch,
                               call.scorer.n_classes(), factor.largest, worker.small.data(), best)) {
    return false;
  }
  for (size_t i = 0; i < piece.n; i++) {
    if (best[i] < 0 && !score_piece({piece.first + i, 1}, call, worker)) return false;
  }
  return true;
}

// The rows [first, last), or those positions in a list of rows.
bool score_rows(size_t first, size_t last, const int64_t* rows, const Call& call, Worker& worker) {
  for (; first < last; first += call.chunk_rows) {
    Piece piece{first, std::min(call.chunk_rows, last - first)};
    if (rows) {
      piece.rows = rows + first;
      piece.n_ahead = std::min(piece.n, last - first - piece.n);
    }
    if (!(call.guess ? guess_piece(piece, call, worker) : score_piece(piece, call, worker))) return false;
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

Call::Call(const Scorer& scorer_, const std::vector<ScoreBlock>& blocks_, size_t n_rows, bool chosen_,
           const Scores& out_)
    : scorer(scorer_), kernels(scorer_.kernels()), blocks(blocks_), out(out_), chosen(chosen_), limits(blocks_.size()) {
  const std::vector<ScoreFactor>& factors = scorer.factors();
  const size_t n_classes = scorer.n_classes();
  size_t most_codes = 1, row_bytes = 1;
  work = static_cast<double>(n_rows) * static_cast<double>(n_classes) / 8.0;
  for (size_t f = 0; f < blocks.size(); f++) {
    if (factors[f].kind == FactorKind::codes) most_codes = std::max(most_codes, factors[f].n_columns);
    work += work_of(factors[f], blocks[f], n_rows, n_classes);
    for (size_t j = 0; chosen && j < blocks[f].table.n_columns; j++) {
      row_bytes += size_of(blocks[f].table.column(j).type);
    }
  }
  const size_t fitting =
      std::min({codes_in_chunk / most_codes, scores_in_chunk / n_classes, gathered_bytes / row_bytes});
  chunk_rows = std::min(std::clamp(fitting / row_pad * row_pad, row_pad, most_chunk_rows), n_rows);
  // Not a power of two, which would map the columns of a block to the same few cache sets.
  pitch = (chunk_rows + row_pad - 1) / row_pad * row_pad + row_pad / 2;
  guess = out.best && factors.size() == 1 && !factors[0].small_table.empty();
  for (size_t f = 0; f < blocks.size(); f++) {
    if (factors[f].kind == FactorKind::codes) limits[f].emplace(factors[f], blocks[f].table, chunk_rows);
  }
}

bool Scorer::score(const std::vector<ScoreBlock>& blocks, const Chosen& chosen, size_t threads,
                   const Scores& out) const {
  if (chosen.n_rows == 0) return true;
  std::vector<Call> calls;
  calls.emplace_back(*this, blocks, chosen.n_rows, chosen.rows != nullptr, out);
  const Call& call = calls[0];
  const Grid grid(chosen.n_rows, std::max(rows_in_part / call.chunk_rows, size_t{1}) * call.chunk_rows);
  auto process = [&](Worker& worker, size_t part, Order&) {
    return score_rows(grid.first(part), grid.last(part), chosen.rows, call, worker);
  };
  return run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, call.work), 1, [&] { return Worker(calls); },
                   process, [](Worker&) {});
}

bool score_by_part(const std::vector<const Scorer*>& scorers, const std::vector<ScoreBlock>& blocks, size_t n_rows,
                   const int32_t* part_of, size_t threads, const std::vector<Scores>& out) {
  if (n_rows == 0 || scorers.empty()) return true;
  std::vector<Call> calls;
  calls.reserve(scorers.size());
  for (size_t s = 0; s < scorers.size(); s++) calls.emplace_back(*scorers[s], blocks, n_rows, true, out[s]);
  const size_t n_scorers = scorers.size();
  const Grid grid(n_rows, rows_of_all_parts);
  struct Sorter {
    Worker worker;
    std::vector<size_t> stops;
    std::vector<int64_t> rows;
  };
  auto make = [&] {
    return Sorter{Worker(calls), std::vector<size_t>(n_scorers + 1), std::vector<int64_t>(grid.part_rows)};
  };
  auto process = [&](Sorter& sorter, size_t part, Order&) {
    std::vector<size_t>& stops = sorter.stops;
    std::fill(stops.begin(), stops.end(), 0);
    for (size_t row = grid.first(part); row < grid.last(part); row++) {
      if (part_of[row] >= 0) stops[static_cast<size_t>(part_of[row]) + 1]++;
    }
    for (size_t s = 0; s < n_scorers; s++) stops[s + 1] += stops[s];
    for (size_t row = grid.first(part); row < grid.last(part); row++) {  // moves every start to its stop
      if (part_of[row] >= 0) sorter.rows[stops[static_cast<size_t>(part_of[row])]++] = static_cast<int64_t>(row);
    }
    for (size_t s = 0; s < n_scorers; s++) {
      if (!score_rows(s ? stops[s - 1] : 0, stops[s], sorter.rows.data(), calls[s], sorter.worker)) return false;
    }
    return true;
  };
  return run_parts(grid.n_parts, choose_threads(threads, grid.n_parts, calls[0].work), 1, make, process,
                   [](Sorter&) {});
}

}  // namespace tallybayes
