// Slow search for a value that a scorer does not allow: the first factor that has one, its first by row, then column.
#include <cmath>
#include <stdexcept>

#include "score/score.h"

namespace tallybayes {

namespace {

bool accepted(double x, Check check) {
  if (check == Check::binary) return x == 0.0 || x == 1.0;
  if (!std::isfinite(x)) return false;
  if (check == Check::finite) return true;
  return x >= 0.0 && (check == Check::nonnegative || x == std::floor(x));
}

size_t row_at(const Chosen& chosen, size_t i) { return chosen.rows ? static_cast<size_t>(chosen.rows[i]) : i; }

InvalidValue search_table(const ScoreFactor& factor, const Table& table, size_t f, const Chosen& chosen) {
  const bool codes = factor.kind == FactorKind::codes;
  for (size_t i = 0; i < chosen.n_rows; i++) {
    const size_t row = row_at(chosen, i);
    for (size_t j = 0; j < factor.n_columns; j++) {
      const Column column = table.column(j);
      bool good;
      if (codes) {
        const uint64_t code = code_at(column, row);
        good = code < code_limit(column.type, factor.sizes[j]) || code == missing_code(column.type);
      } else {
        const double x = cell_at(column, row);
        good = std::isnan(x) || accepted(x, factor.check);
      }
      if (!good) return {InvalidValue::What::cell, f, row, j};
    }
  }
  return {};
}

InvalidValue search_sparse(const ScoreFactor& factor, const Sparse& matrix, size_t f, const Chosen& chosen) {
  for (size_t i = 0; i < chosen.n_rows; i++) {
    const size_t row = row_at(chosen, i);
    const int64_t start = entry_at(matrix.indptr, row), stop = entry_at(matrix.indptr, row + 1);
    if (start < 0 || stop < start || stop > static_cast<int64_t>(matrix.n_entries)) {
      return {InvalidValue::What::extent, f, row, 0, start, stop};
    }
  }
  InvalidValue cell;
  for (size_t place = 0; place < chosen.n_rows; place++) {
    const size_t row = row_at(chosen, place);
    const size_t stop = static_cast<size_t>(entry_at(matrix.indptr, row + 1));
    for (size_t i = static_cast<size_t>(entry_at(matrix.indptr, row)); i < stop; i++) {
      const int64_t index = entry_at(matrix.indices, i);
      if (static_cast<uint64_t>(index) >= matrix.n_columns) return {InvalidValue::What::index, f, row, 0, index, 0};
      if (cell.what == InvalidValue::What::cell && cell.row != row) continue;  // only an invalid index can still come first
      if (accepted(cell_at(matrix.data, i), factor.check)) continue;
      const size_t column = static_cast<size_t>(index);
      if (cell.what == InvalidValue::What::nothing || column < cell.column) cell = {InvalidValue::What::cell, f, row, column};
    }
  }
  return cell;
}

}  // namespace

InvalidValue find_invalid_value(const Scorer& scorer, const std::vector<ScoreBlock>& blocks, const Chosen& chosen) {
  for (size_t f = 0; f < blocks.size(); f++) {
    const ScoreFactor& factor = scorer.factors()[f];
    if ((factor.kind == FactorKind::codes && !factor.strict) || factor.kind == FactorKind::terms) continue;
    const InvalidValue found = factor.kind == FactorKind::sparse ? search_sparse(factor, blocks[f].sparse, f, chosen)
                                                            : search_table(factor, blocks[f].table, f, chosen);
    if (found.what != InvalidValue::What::nothing) return found;
  }
  throw std::logic_error("scoring stopped without a reason");
}

}  // namespace tallybayes
