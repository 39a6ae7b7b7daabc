// One call of the scorer: data shared by all threads, and the working memory of each thread.
#pragma once

#include <algorithm>
#include <optional>

#include "score/score_gather.h"

namespace tallybayes {

constexpr size_t repeated_codes = 512;  // short rows are validated together, as many as make a run of this length

// The limits of the codes of one call, which depend on the types of its columns.
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
    columns = {limits.data(), offsets.data(), repeated, static_cast<uint32_t>(factor.pitch), factor.strict};
  }
  CodeLimits(const CodeLimits&) = delete;
  CodeLimits(CodeLimits&&) = default;  // vectors keep their address when they are moved
};

struct Call {
  const Scorer& scorer;
  const ScoreKernels& kernels;
  const std::vector<ScoreBlock>& blocks;
  Scores out;
  bool chosen;  // rows are selected by number
  std::vector<std::optional<CodeLimits>> limits;
  size_t chunk_rows = 0, pitch = 0;
  bool guess = false;  // argmax of one sparse factor
  double work = 0.0;

  Call(const Scorer&, const std::vector<ScoreBlock>&, size_t n_rows, bool chosen, const Scores&);
  Call(Call&&) = default;
};

// Some rows that are scored together: those from `first` on, or those with these numbers, which n_ahead more of the
// same list follow.
struct Piece {
  size_t first, n;
  const int64_t* rows = nullptr;
  size_t n_ahead = 0;

  size_t row(size_t i) const { return rows ? static_cast<size_t>(rows[i]) : first + i; }
  size_t start() const { return rows ? 0 : first; }  // in the worker's tables
};

inline bool all_bytes(const Table& table) {
  for (size_t j = 0; j < (table.separate ? table.n_columns : 1); j++) {
    if (size_of(table.separate ? table.columns[j].type : table.type) != 1) return false;
  }
  return true;
}

inline size_t bit_pitch(const ScoreFactor& factor) { return (factor.n_columns + 63) / 64 * 8; }

inline bool by_bits(const ScoreFactor& factor, const ScoreBlock& block) {
  return !factor.bit_table.empty() && all_bytes(block.table);
}

inline bool by_rows(FactorKind kind) {
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
  std::vector<Table> tables;  // of every factor, with the available rows

  // Calls that are interleaved have the same blocks and classes.
  explicit Worker(const std::vector<Call>& calls) {
    const Call& first = calls[0];
    for (const ScoreBlock& block : first.blocks) {
      tables.push_back(block.table);
      gathered.emplace_back();
      if (first.chosen && block.table.n_columns) gathered.back().emplace(block.table, first.chunk_rows);
    }
    for (const Call& call : calls) make_room(call);
  }

  void make_room(const Call& call) {
    const size_t n_classes = call.scorer.n_classes(), n_scores = n_classes * call.pitch;
    size_t n_entries = 0, n_cells = 0, n_looked_up = 0;
    bool dense = false, student = false;
    for (size_t f = 0; f < call.blocks.size(); f++) {
      const ScoreFactor& factor = call.scorer.factors()[f];
      if (by_bits(factor, call.blocks[f])) {
        n_looked_up = std::max(n_looked_up, call.chunk_rows * factor.pitch);
        grow(bits, call.chunk_rows * bit_pitch(factor));
        if (!call.blocks[f].table.row_major()) grow(bytes, call.chunk_rows * factor.n_columns);
      } else if (by_rows(factor.kind)) {
        n_looked_up = std::max(n_looked_up, call.chunk_rows * factor.pitch);
        if (factor.kind == FactorKind::codes) n_entries = std::max(n_entries, call.chunk_rows * factor.n_columns);
      } else {
        n_cells = std::max(n_cells, std::min(factor.n_columns, block_columns) * call.pitch);
        dense = true;
        student |= factor.kind == FactorKind::student;
      }
    }
    scores.grow(n_scores);
    density.grow(call.out.posterior ? call.pitch : 0);
    turned.grow(call.out.posterior && call.chosen ? n_scores : 0);
    cells.grow(n_cells);
    sum.grow(dense ? n_scores : 0);
    norm.grow(dense ? n_scores : 0);
    exponent.grow(student ? n_scores : 0);
    rows.grow(n_looked_up);
    grow(entries, n_entries);
    if (call.guess) {
      small.grow(call.scorer.factors()[0].pitch);
      grow(guesses, call.chunk_rows);
    }
  }

  template <class T>
  static void grow(std::vector<T>& array, size_t n) {
    if (array.size() < n) array.resize(n);
  }
};

}  // namespace tallybayes
