// Newton's method for the logs of concentrations, with the same steps as
// tallybayes/kernels/reference/dirichlet_fit.py, which documents them. Columns are fitted one by one, so that none
// depends on the others.
#include "count/dirichlet_fit.h"

#include <algorithm>
#include <cmath>

#include "core/elementary.h"

namespace tallybayes {

namespace {

constexpr int most_rounds = 40;
constexpr size_t few = 8;  // ψ differences of integer counts up to this are sums of reciprocals
constexpr double close = 1e-7;  // tolerance of log α
constexpr double smallest = 1e-300;

struct Slopes {
  double first = 0, second = 0;
};

// ψ(start + steps) − ψ(start), and the same difference of ψ′ to six digits: by recurrence up to 8, then by asymptotic
// series, all computed as differences, without cancellation.
Slopes rising(double start, double steps) {
  Slopes out;
  double a = start, b = start + steps;
  while (a < 8.0) {
    const double over = 1.0 / (a * b);
    out.first += steps * over;
    out.second -= steps * (a + b) * over * over;
    a += 1.0, b += 1.0;
  }
  const double over = 1.0 / (a * b), r = b * over, t = a * over, by_one = steps * over;
  const double p = r * r, q = t * t, by_two = by_one * (r + t);
  // Σ pⁱ qʲ with i + j = k, and the even Bernoulli numbers divided by 2k
  double sum = 1.0, power = 1.0, series = 1.0 / 12.0;
  constexpr double terms[] = {-1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0};
  for (const double term : terms) {
    power *= q;
    sum = p * sum + power;
    series += term * sum;
  }
  out.first += log_one_plus(steps * r) + (0.5 * by_one + by_two * series);
  const double m = r * t;
  out.second -= by_one * (1.0 + 0.5 * (r + t) + (p + m + q) / 6.0 - (p * (p + m) + m * m + q * (m + q)) / 30.0);
  return out;
}

double clipped(double x, double low, double high) { return std::min(std::max(x, low), high); }

struct Run {
  double seen, times;
};

struct Cell {
  double many, half, alpha, log_slope, steep;
  bool seen;
  double beyond[few];  // number of groups with more than 0, 1, 2, … counts
  size_t first, last;  // its runs: larger counts, and their numbers of groups
};

class Column {
 public:
  Column(size_t n_few, size_t n_groups) : n_few_(n_few), n_groups_(n_groups) {}

  void load(const double* counts, const double* rows, const double* many, size_t n_cells, double n_levels) {
    rows_ = rows;
    size_t n_seen = 0;
    total_ = 0;
    for (size_t g = 0; g < n_groups_; g++) n_seen += rows[g] > 0, total_ += rows[g];
    empty_ = n_seen == 0;
    single_ = n_levels < 2;
    free_ = n_seen > 1;
    low_ = natural_log(2.0 / static_cast<double>(std::max<size_t>(n_seen, 1)));
    high_ = std::max(natural_log(std::max(total_, smallest)), low_);
    log_strength_ = clipped(natural_log(std::max(n_levels, 1.0)), low_, high_);
    cells_.assign(n_cells, Cell{});
    runs_.clear();
    double unseen = 0;
    for (size_t i = 0; i < n_cells; i++) {
      Cell& cell = cells_[i];
      cell.many = many[i];
      read(counts + i * n_groups_, cell);
      if (free_ && cell.alpha == 0) unseen += cell.many;
    }
    double sum = 0;
    for (Cell& cell : cells_) {
      cell.half = free_ && cell.alpha == 0 ? 0.5 / std::max(unseen, 1.0) : 0.0;
      cell.alpha = free_ ? cell.alpha + cell.half : 1.0;
      sum += cell.many * cell.alpha;
    }
    scale_to(log_strength_, sum);
  }

  void fit() {
    if (empty_) {
      for (Cell& cell : cells_) cell.alpha = 1.0;
      return;
    }
    if (single_) return;  // with one level, all concentrations are equivalent
    double radius = 2.0, before = 0.0;
    for (int round = 0; round < most_rounds; round++) {
      if (newton(radius, before) < close) break;
    }
  }

  // Rounded to so few bits that sums with integer counts are exact, in any order.
  void round_into(double* out) const {
    double sum = 0;
    for (const Cell& cell : cells_) sum += cell.many * cell.alpha;
    int bits = 0;
    std::frexp(sum + total_, &bits);
    const double unit = std::ldexp(1.0, bits - 52);
    for (size_t i = 0; i < cells_.size(); i++) out[i] = std::max(std::nearbyint(cells_[i].alpha / unit), 1.0) * unit;
  }

 private:
  // The counts of one cell, with equal counts merged; its initial concentration is their sum.
  void read(const double* counts, Cell& cell) {
    const double from = static_cast<double>(n_few_);
    cell.first = runs_.size();
    for (size_t g = 0; g < n_groups_; g++) {
      const double count = counts[g];
      cell.alpha += count;
      for (size_t j = 0; j < n_few_ && static_cast<double>(j) < count; j++) cell.beyond[j] += 1.0;
      if (count <= from) continue;
      if (runs_.size() > cell.first && runs_.back().seen == count - from) {
        runs_.back().times += 1.0;
      } else {
        runs_.push_back({count - from, 1.0});
      }
    }
    cell.last = runs_.size();
  }

  void scale_to(double log_strength, double sum) {
    const double scale = exponential(log_strength) / std::max(sum, smallest);
    for (Cell& cell : cells_) cell.alpha *= scale;
  }

  Slopes slopes_of(const Cell& cell) const {
    const double half = cell.half / cell.alpha;
    Slopes out{half, -half / cell.alpha};
    for (size_t j = 0; j < n_few_; j++) {
      if (cell.beyond[j] == 0) break;
      const double term = 1.0 / (cell.alpha + static_cast<double>(j));
      out.first += cell.beyond[j] * term;
      out.second -= cell.beyond[j] * term * term;
    }
    for (size_t i = cell.first; i < cell.last; i++) {
      const Slopes found = rising(cell.alpha + static_cast<double>(n_few_), runs_[i].seen);
      out.first += runs_[i].times * found.first;
      out.second += runs_[i].times * found.second;
    }
    return out;
  }

  // One step, and the length of its longest part.
  double newton(double& radius, double& before) {
    const double strength = exponential(log_strength_);
    Slopes common;
    for (size_t g = 0; g < n_groups_; g++) {
      if (rows_[g] == 0) continue;
      const Slopes found = rising(strength, rows_[g]);
      common.first += found.first;
      common.second += found.second;
    }
    const double fall = -strength * common.second / common.first, log_common = natural_log(common.first);
    double gain = 0, give = 0, top = 0, meet = 0, held = 0;
    for (Cell& cell : cells_) {
      const Slopes slope = slopes_of(cell);
      cell.seen = slope.first > 0;
      cell.log_slope = cell.seen ? natural_log(slope.first) : 0.0;
      cell.steep = cell.seen ? -cell.alpha * slope.second / slope.first : 1.0;
      const double share = cell.alpha / strength;
      gain += cell.many * (cell.alpha * slope.first);
      held += cell.many * (cell.alpha * (slope.first + cell.alpha * slope.second));
      give += cell.many * (share / cell.steep);
      top += cell.many * (share * (cell.seen ? cell.log_slope - log_common : 0.0) / cell.steep);
      meet += cell.many * (share * cell.log_slope / cell.steep);
    }
    gain -= strength * common.first;
    const double bottom = free_ ? 1 - fall * give : strength * common.first * (1 - fall) - held;
    double raw = bottom > 0 ? (free_ ? top : gain) / bottom : gain > 0 ? 9.0 : gain < 0 ? -9.0 : 0.0;
    if (raw * before < 0) radius /= 2;
    raw = clipped(raw, -radius, radius);
    before = raw;
    const double step = clipped(log_strength_ + raw, low_, high_) - log_strength_;
    const double level = free_ ? (meet - step) / (give > 0 ? give : 1.0) : 0.0;
    double sum = 0, longest = std::fabs(step);
    for (Cell& cell : cells_) {
      const double stretch = free_ ? (cell.log_slope - level) / cell.steep : step;
      longest = std::max(longest, std::fabs(stretch));
      cell.alpha *= exponential(clipped(stretch, -3.0, 3.0));
      sum += cell.many * cell.alpha;
    }
    log_strength_ += step;
    scale_to(log_strength_, sum);
    return longest;
  }

  size_t n_few_, n_groups_;
  const double* rows_ = nullptr;
  std::vector<Cell> cells_;
  std::vector<Run> runs_;
  bool empty_ = false, free_ = false, single_ = false;
  double total_ = 0, low_ = 0, high_ = 0, log_strength_ = 0;
};

}  // namespace

std::vector<double> climb_dirichlet(const DirichletCounts& input) {
  size_t n_cells = 0;
  for (size_t j = 0; j < input.n_columns; j++) n_cells += static_cast<size_t>(input.sizes[j]);
  const double* end = input.counts + n_cells * input.n_groups;
  const bool whole = std::all_of(input.counts, end, [](double count) { return std::nearbyint(count) == count; });
  std::vector<double> out(n_cells);
  Column column(whole ? few : 0, input.n_groups);
  size_t first = 0;
  for (size_t j = 0; j < input.n_columns; j++) {
    const auto size = static_cast<size_t>(input.sizes[j]);
    column.load(input.counts + first * input.n_groups, input.rows + j * input.n_groups, input.many + first, size,
                static_cast<double>(input.n_levels[j]));
    column.fit();
    column.round_into(out.data() + first);
    first += size;
  }
  return out;
}

}  // namespace tallybayes
