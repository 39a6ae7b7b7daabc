// Conversion of the caller's tables to those of the loops, once per scorer.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/parallel.h"
#include "score/score.h"

namespace tallybayes {

namespace {

size_t padded_classes(size_t n_classes) { return (n_classes + panel_classes - 1) / panel_classes * panel_classes; }

// [column][class] to groups of classes, each [column][parameter][class].
Vector pack(const std::vector<const double*>& parameters, size_t n_columns, size_t n_classes) {
  const size_t n = parameters.size();
  Vector packed(n * n_columns * n_classes);
  double* out = packed.data();
  for (size_t g = 0; g < class_groups(n_classes); g++) {
    const ClassGroup group = class_group(n_classes, g);
    for (size_t j = 0; j < n_columns; j++) {
      for (const double* parameter : parameters) {
        out = std::copy_n(parameter + j * n_classes + group.first, group.n, out);
      }
    }
  }
  return packed;
}

bool same_in_all_columns(const Vector& values, size_t n_classes) {
  for (size_t i = n_classes; i < values.size(); i++) {
    if (values[i] != values[i - n_classes]) return false;
  }
  return true;
}

// Summed in the same order as the loops do if cells are missing, so that a row without missing cells has the same bits
// either way.
// has the same bits either way.
Vector sums_before_blocks(const double* norms, size_t n_columns, size_t n_classes) {
  const size_t n_blocks = (n_columns + block_columns - 1) / block_columns;
  Vector result((n_blocks + 1) * n_classes, 0.0);
  for (size_t block = 0; block < n_blocks; block++) {
    double* sums = result.data() + (block + 1) * n_classes;
    std::copy_n(sums - n_classes, n_classes, sums);
    for (size_t j = block * block_columns; j < std::min(n_columns, (block + 1) * block_columns); j++) {
      for (size_t k = 0; k < n_classes; k++) sums[k] += norms[j * n_classes + k];
    }
  }
  return result;
}

// For every 4 columns the sums of their weights for all 16 combinations of 0 and 1.
void add_bit_table(const Vector& weight, size_t n_classes, ScoreFactor& factor) {
  constexpr size_t most_bytes = size_t{8} << 20;
  const size_t n_halves = (factor.n_columns + 7) / 8 * 2;
  const size_t n_doubles = n_halves * 16 * factor.pitch;
  if (n_doubles * sizeof(double) > most_bytes) return;
  factor.bit_table.resize(n_doubles);
  for (size_t half = 0; half < n_halves; half++) {
    for (size_t bits = 0; bits < 16; bits++) {
      double* out = factor.bit_table.data() + (half * 16 + bits) * factor.pitch;
      for (size_t b = 0; b < 4 && 4 * half + b < factor.n_columns; b++) {
        const double* row = weight.data() + (4 * half + b) * n_classes;
        for (size_t k = 0; k < n_classes && (bits >> b & 1); k++) out[k] += row[k];
      }
    }
  }
}

constexpr double largest_half = 65504.0;

// The nearest 16-bit float (11 significant bits, 5 of exponent) of a number within ±largest_half.
uint16_t to_half(double x) {
  const double magnitude = std::fabs(x);
  uint64_t bits, tiny;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  bits += (uint64_t{1} << 41) - 1 + ((bits >> 42) & 1);  // to the nearest of 11 bits, ties to even
  const uint64_t normal = (bits >> 42) - (uint64_t{1023 - 15} << 10);
  const double steps = magnitude + 0x1p28;  // below the smallest exponent the spacing is 2⁻²⁴: here the last bits
  std::memcpy(&tiny, &steps, sizeof(tiny));
  const uint64_t half = magnitude < 0x1p-14 ? tiny & 0xffff : normal;
  return static_cast<uint16_t>((x < 0.0 ? 0x8000 : 0) | half);
}

// Rows of a table of halves should not straddle cache lines.
size_t small_pitch(size_t n_classes) {
  size_t pitch = panel_classes;
  while (pitch < n_classes && pitch < 32) pitch *= 2;
  return (n_classes + pitch - 1) / pitch * pitch;
}

}  // namespace

void Scorer::add_codes(const int64_t* sizes, size_t n_columns, const double* table, bool strict) {
  const size_t k = n_classes();
  ScoreFactor factor;
  factor.kind = FactorKind::codes;
  factor.n_columns = n_columns;
  factor.n_classes = k;
  factor.strict = strict;
  factor.pitch = padded_classes(k);
  size_t n_entries = 1;
  for (size_t j = 0; j < n_columns; j++) {
    const size_t offset = n_entries * factor.pitch;
    n_entries += static_cast<size_t>(sizes[j]);
    if (n_entries * factor.pitch > UINT32_MAX) throw std::invalid_argument("the table of codes has too many cells");
    factor.sizes.push_back(static_cast<uint32_t>(sizes[j]));
    factor.offsets.push_back(static_cast<uint32_t>(offset));
  }
  factor.table.resize(n_entries * factor.pitch);
  for (size_t row = 1; row < n_entries; row++) {
    std::copy_n(table + (row - 1) * k, k, factor.table.data() + row * factor.pitch);
  }
  factors_.push_back(std::move(factor));
}

void Scorer::add_dense(FactorKind kind, Check check, size_t n_columns, std::vector<Vector> parameters,
                       const double* norms) {
  const size_t k = n_classes();
  ScoreFactor factor;
  factor.kind = kind;
  factor.check = check;
  factor.n_columns = n_columns;
  factor.n_classes = k;
  // Square roots, because their product with the difference is squared last: neither overflows before the result
  // would.
  if (kind == FactorKind::normal) {
    for (double& precision : parameters[1]) precision = std::sqrt(0.5 * precision);
  }
  if (kind == FactorKind::student) {
    for (double& inverse_spread : parameters[1]) inverse_spread = std::sqrt(inverse_spread);
    if (same_in_all_columns(parameters[2], k)) {
      factor.power = n_columns ? Vector(parameters[2].begin(), parameters[2].begin() + static_cast<ptrdiff_t>(k))
                               : Vector(k, 0.0);
      parameters.pop_back();
    } else {
      factor.kind = FactorKind::student_by_column;
    }
  }
  std::vector<const double*> pointers;
  for (const Vector& parameter : parameters) pointers.push_back(parameter.data());
  factor.n_parameters = parameters.size();
  factor.parameters = pack(pointers, n_columns, k);
  factor.norms = pack({norms}, n_columns, k);
  factor.norm_before = sums_before_blocks(norms, n_columns, k);
  factor.pitch = padded_classes(k);
  if (kind == FactorKind::linear && check == Check::binary) add_bit_table(parameters[0], k, factor);
  factors_.push_back(std::move(factor));
}

bool Scorer::reads_like(const Scorer& other) const {
  auto same = [](const ScoreFactor& a, const ScoreFactor& b) {
    const auto type = [](const ScoreFactor& factor) {
      return factor.kind == FactorKind::student_by_column ? FactorKind::student : factor.kind;
    };
    return type(a) == type(b) && a.n_columns == b.n_columns;
  };
  return n_classes() == other.n_classes() &&
         std::equal(factors_.begin(), factors_.end(), other.factors_.begin(), other.factors_.end(), same);
}

void Scorer::add_left_out(size_t of_class, std::vector<Vector> parameters, const double* norms) {
  ScoreFactor factor;
  factor.kind = FactorKind::left_out;
  factor.check = Check::finite;
  factor.n_columns = parameters[0].size();
  factor.first_class = of_class;
  factor.n_classes = 1;
  for (double& inverse_spread : parameters[1]) inverse_spread = std::sqrt(inverse_spread);
  factor.n_parameters = 3;
  factor.parameters = pack({parameters[0].data(), parameters[1].data(), parameters[2].data()}, factor.n_columns, 1);
  factor.norms = pack({norms}, factor.n_columns, 1);
  factor.norm_before = sums_before_blocks(norms, factor.n_columns, 1);
  factors_.push_back(std::move(factor));
}

void Scorer::add_terms() {
  ScoreFactor factor;
  factor.kind = FactorKind::terms;
  factor.n_columns = factor.n_classes = n_classes();
  factor.pitch = padded_classes(n_classes());
  factors_.push_back(std::move(factor));
}

void Scorer::add_sparse(size_t n_columns, const double* weight, Check check) {
  const size_t k = n_classes();
  ScoreFactor factor;
  factor.kind = FactorKind::sparse;
  factor.check = check;
  factor.n_columns = n_columns;
  factor.n_classes = k;
  factor.pitch = padded_classes(k);
  factor.table.resize(n_columns * factor.pitch);
  for (size_t j = 0; j < n_columns; j++) std::copy_n(weight + j * k, k, factor.table.data() + j * factor.pitch);
  bool infinite = false;
  for (size_t i = 0; i < n_columns * k; i++) infinite |= std::isinf(weight[i]);
  factor.skip_zero = infinite;
  factors_.push_back(std::move(factor));
}

// Terms that are equal in all classes do not change the best class. After subtracting the largest, all terms are at
// most 0, and the rounding errors of a sum are bounded by the sum.
void Scorer::prepare_guesses() {
  if (tried_guesses_) return;
  tried_guesses_ = true;
  if (!kernels_.guess_best || factors_.size() != 1 || factors_[0].kind != FactorKind::sparse) return;
  ScoreFactor& factor = factors_[0];
  for (size_t i = 0; i < factor.n_columns * factor.pitch; i++) {
    factor.largest = std::max(factor.largest, std::fabs(factor.table.data()[i]));
  }
  for (const double start : start_) {
    if (std::isfinite(start)) factor.largest = std::max(factor.largest, std::fabs(start));
  }
  const double best_start = *std::max_element(start_.begin(), start_.end());
  if (factor.check == Check::finite || !std::isfinite(best_start) || factor.largest >= largest_half / 2.0) return;
  const size_t k = n_classes();
  factor.small_pitch = small_pitch(k);
  factor.small_start.resize(factor.pitch);
  factor.small_table.resize(factor.n_columns * factor.small_pitch);
  for (size_t c = 0; c < k; c++) factor.small_start.data()[c] = static_cast<float>(start_[c] - best_start);
  const Grid grid(factor.n_columns, 1024);
  auto process = [&](int, size_t part, Order&) {
    for (size_t j = grid.first(part); j < grid.last(part); j++) {
      const double* weight = factor.table.data() + j * factor.pitch;
      const double best = *std::max_element(weight, weight + k);
      uint16_t* out = factor.small_table.data() + j * factor.small_pitch;
      for (size_t c = 0; c < k; c++) out[c] = to_half(weight[c] - best);
    }
    return true;
  };
  const size_t threads = choose_threads(0, grid.n_parts, static_cast<double>(factor.n_columns * k));
  run_parts(grid.n_parts, threads, 0, [] { return 0; }, process, [](int) {});
}

}  // namespace tallybayes
