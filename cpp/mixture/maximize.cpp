// M-step: the most probable parameters for the sums of the E-step.
#include <algorithm>
#include <cmath>

#include "core/elementary.h"
#include "mixture/mixture.h"

namespace tallybayes {

namespace {

constexpr double log_two_pi = 1.83787706640934548356;
constexpr double least_eigenvalue = 1e-10;  // of a correlation matrix: below, a class collapses to a hyperplane
// Products about a common center lose this many digits of a class that is so far from it, relative to its variance.
constexpr double most_far = 1e4;

// Whether the smallest eigenvalue of the correlation matrix exceeds the least one.
bool is_regular(const double* covariance, size_t d) {
  Vector correlation(d * d);
  for (size_t i = 0; i < d; i++) {
    if (!(covariance[i * d + i] > 0.0)) return false;
    for (size_t j = 0; j < d; j++) {
      correlation[i * d + j] = covariance[i * d + j] / std::sqrt(covariance[i * d + i] * covariance[j * d + j]);
    }
    correlation[i * d + i] = 1.0 - least_eigenvalue;
  }
  return factorize(correlation.data(), d);
}

// The variance of every class and column from the pooled sums of its tied axes.
bool maximize_diagonal(GaussianBlock& block, const GaussianSums& sums, size_t n_classes, const Vector& scatter) {
  const size_t d = block.n_columns(), rows = block.tied_classes ? 1 : n_classes, columns = block.tied_columns ? 1 : d;
  Vector total(block.scale), weight(block.rows);
  for (size_t k = 0; k < n_classes; k++) {
    for (size_t j = 0; j < d; j++) {
      const size_t cell = (block.tied_classes ? 0 : k) * columns + (block.tied_columns ? 0 : j);
      total[cell] += scatter[k * d + j];
      weight[cell] += sums.weight[sums.any_missing ? k * d + j : k];
    }
  }
  for (size_t cell = 0; cell < rows * columns; cell++) total[cell] /= weight[cell];
  for (size_t k = 0; k < n_classes; k++) {
    for (size_t j = 0; j < d; j++) {
      const double variance = total[(block.tied_classes ? 0 : k) * columns + (block.tied_columns ? 0 : j)];
      if (!(variance > 0.0) || !std::isfinite(variance)) return false;
      if (!block.has_prior && variance < block.least[j]) return false;
      block.spread[k * d + j] = variance;
    }
  }
  return true;
}

bool maximize_full(GaussianBlock& block, const GaussianSums& sums, size_t n_classes, const Vector& scatter) {
  const size_t d = block.n_columns(), size = d * d, matrices = block.tied_classes ? 1 : n_classes;
  Vector total(block.scale), weight(block.rows);
  for (size_t cell = 0; cell < size && block.light; cell++) total[cell] += block.total[cell];
  for (size_t k = 0; k < n_classes; k++) {
    const size_t to = block.tied_classes ? 0 : k;
    for (size_t cell = 0; cell < size; cell++) total[to * size + cell] += scatter[k * size + cell];
    weight[to] += sums.weight[k];
  }
  for (size_t m = 0; m < matrices; m++) {
    double* covariance = &total[m * size];
    for (size_t cell = 0; cell < size; cell++) covariance[cell] /= weight[m];
    if (!is_regular(covariance, d)) return false;
    for (size_t j = 0; j < d && !block.has_prior; j++) {
      if (covariance[j * d + j] < block.least[j]) return false;
    }
  }
  for (size_t k = 0; k < n_classes; k++) {
    const double* covariance = &total[(block.tied_classes ? 0 : k) * size];
    std::copy(covariance, covariance + size, &block.spread[k * size]);
  }
  return true;
}

// The scatter of all rows about the center.
Vector total_scatter(const GaussianSums& sums, size_t n_classes, size_t d) {
  Vector total(d * d, 0.0);
  for (size_t k = 0; k < n_classes; k++) {
    const double *first = &sums.first[k * d], *about = &sums.about[k * d], *second = &sums.second[k * d * d];
    for (size_t i = 0; i < d; i++) {
      for (size_t j = 0; j < d; j++) {
        const double moved = (first[i] + sums.weight[k] * about[i]) * about[j];
        total[i * d + j] += second[i * d + j] + (about[i] * first[j] + moved);
      }
    }
  }
  return total;
}

// New means, and the scatter about them plus the shrinkage of the means to their prior.
bool maximize_gaussians(GaussianBlock& block, const GaussianSums& sums, size_t n_classes) {
  const size_t d = block.n_columns(), width = block.width();
  Vector scatter(n_classes * width), shift(d), drawn(d);
  if (block.tied_full() && block.total.empty()) block.total = total_scatter(sums, n_classes, d);
  for (size_t k = 0; k < n_classes; k++) {
    for (size_t j = 0; j < d; j++) {
      const size_t cell = k * d + j;
      const double n = sums.weight[sums.any_missing ? cell : k], strength = block.strength[cell];
      if (!(n > 0.0) && !(strength > 0.0)) return false;
      shift[j] = n > 0.0 ? sums.first[cell] / n : 0.0;
      const double mean = n > 0.0 ? sums.about[cell] + shift[j] : block.location[cell];
      const double away = mean - block.location[cell];
      drawn[j] = away * std::sqrt(strength * (n / (strength + n)));
      block.mean[cell] = block.location[cell] + away * (n / (strength + n));
      if (!block.full) {
        scatter[cell] = std::max(0.0, sums.second[cell] - sums.first[cell] * shift[j]) + drawn[j] * drawn[j];
      }
    }
    for (size_t i = 0; i < d && block.full; i++) {
      for (size_t j = 0; j <= i; j++) {
        const size_t cell = k * width + i * d + j;
        const double second = block.light ? 0.0 : sums.second[cell];  // of all classes, in block.total
        scatter[cell] = (second - sums.first[k * d + i] * shift[j]) + drawn[i] * drawn[j];
        scatter[k * width + j * d + i] = scatter[cell];
      }
    }
  }
  return block.full ? maximize_full(block, sums, n_classes, scatter)
                    : maximize_diagonal(block, sums, n_classes, scatter);
}

// Probabilities in proportion to counts and pseudo-counts.
bool maximize_levels(const double* counts, const double* pseudo, size_t n, double* out) {
  double total = 0.0;
  for (size_t i = 0; i < n; i++) total += counts[i] + pseudo[i];
  if (!(total > 0.0)) return false;
  for (size_t i = 0; i < n; i++) out[i] = (counts[i] + pseudo[i]) / total;
  return true;
}

// Blocks of four rows of a lower triangular matrix, [block][column][row], padded with zeros, as in mahalanobis.cpp.
Vector pack_triangle(const Vector& root, size_t d) {
  const size_t n_blocks = (d + length_block - 1) / length_block;
  Vector packed;
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

bool derive_full(GaussianBlock& block, size_t n_classes) {
  const size_t d = block.n_columns();
  block.packed.assign(n_classes, Vector());
  block.root_shift.assign(n_classes, Vector((d + length_block - 1) / length_block * length_block, 0.0));
  block.log_norm.assign(n_classes, -0.5 * static_cast<double>(d) * log_two_pi);
  block.common = d <= most_product_columns;
  Vector inverse;
  double log_determinant = 0.0;
  for (size_t k = 0; k < n_classes; k++) {
    if (k == 0 || !block.tied_classes) {
      Vector root(block.spread.begin() + static_cast<ptrdiff_t>(k * d * d),
                  block.spread.begin() + static_cast<ptrdiff_t>((k + 1) * d * d));
      if (!factorize(root.data(), d)) return false;
      log_determinant = 0.0;
      for (size_t j = 0; j < d; j++) log_determinant += natural_log(root[j * d + j]);
      inverse = invert_triangle(root.data(), d);
    }
    block.packed[k] = pack_triangle(inverse, d);
    for (size_t i = 0; i < d; i++) {
      for (size_t j = 0; j <= i; j++) block.root_shift[k][i] += inverse[i * d + j] * block.mean[k * d + j];
      const double mean = block.mean[k * d + i];
      block.common = block.common && mean * mean <= most_far * block.spread[(k * d + i) * d + i];
    }
    block.log_norm[k] -= log_determinant;
  }
  if (!block.tied_classes) return true;
  block.factor.assign(n_classes * d, 1.0);
  block.norm.assign(n_classes * d, 0.0);
  block.shift.resize(n_classes * d);
  for (size_t k = 0; k < n_classes; k++) {
    block.norm[k * d] = block.log_norm[k];
    std::copy(block.root_shift[k].begin(), block.root_shift[k].begin() + static_cast<ptrdiff_t>(d),
              block.shift.begin() + static_cast<ptrdiff_t>(k * d));
  }
  return true;
}

bool derive_diagonal(GaussianBlock& block, size_t n_classes) {
  const size_t cells = n_classes * block.n_columns();
  for (Vector* terms : {&block.factor, &block.shift, &block.norm}) terms->resize(cells);
  block.common = true;
  for (size_t cell = 0; cell < cells; cell++) {
    block.common = block.common && block.mean[cell] * block.mean[cell] <= most_far * block.spread[cell];
    if (!(block.spread[cell] > 0.0) || !std::isfinite(block.spread[cell])) return false;
    block.factor[cell] = 1.0 / std::sqrt(block.spread[cell]);
    block.shift[cell] = block.mean[cell] * block.factor[cell];
    block.norm[cell] = -0.5 * (log_two_pi + natural_log(block.spread[cell]));
  }
  return true;
}

void derive_codes(CodeBlock& block, size_t n_classes, size_t pitch) {
  const size_t n_levels = block.n_levels();
  block.log_table.resize(block.sizes.size());
  size_t level = 0;
  for (size_t j = 0; j < block.sizes.size(); j++) {
    block.log_table[j].assign((block.sizes[j] + 1) * pitch, 0.0);
    for (size_t code = 0; code < block.sizes[j]; code++, level++) {
      for (size_t k = 0; k < n_classes; k++) {
        block.log_table[j][code * pitch + k] = natural_log(block.probability[k * n_levels + level]);
      }
    }
  }
}

double log_prior_of(const GaussianBlock& block, size_t n_classes) {
  const size_t d = block.n_columns();
  double total = 0.0;
  auto away = [&](size_t k, size_t j) { return block.mean[k * d + j] - block.location[k * d + j]; };
  if (!block.full) {
    const size_t columns = block.tied_columns ? 1 : d;
    for (size_t k = 0; k < n_classes; k++) {
      for (size_t j = 0; j < d; j++) {
        const double variance = block.spread[k * d + j];
        total -= block.strength[k * d + j] * away(k, j) * away(k, j) / variance;
        if ((block.tied_classes && k) || (block.tied_columns && j)) continue;
        total -= block.rows[k * columns + j] * natural_log(variance) + block.scale[k * columns + j] / variance;
      }
    }
    return 0.5 * total;
  }
  for (size_t k = 0; k < n_classes; k++) {
    Vector root(block.spread.begin() + static_cast<ptrdiff_t>(k * d * d),
                block.spread.begin() + static_cast<ptrdiff_t>((k + 1) * d * d));
    if (!factorize(root.data(), d)) return -INFINITY;
    const Vector inverse = invert_triangle(root.data(), d);
    const double* scale = &block.scale[(block.tied_classes ? 0 : k) * d * d];
    for (size_t i = 0; i < d; i++) {
      double z = 0.0;
      for (size_t j = 0; j <= i; j++) z += inverse[i * d + j] * away(k, j);
      total -= block.strength[k * d] * z * z;
      if (block.tied_classes && k) continue;
      total -= 2.0 * block.rows[k] * natural_log(root[i * d + i]);
      for (size_t a = 0; a <= i; a++) {
        double product = 0.0;
        for (size_t b = 0; b <= i; b++) product += scale[a * d + b] * inverse[i * d + b];
        total -= inverse[i * d + a] * product;
      }
    }
  }
  return 0.5 * total;
}

double log_prior_of(const Vector& pseudo, const double* probability) {
  double total = 0.0;
  for (size_t i = 0; i < pseudo.size(); i++) total += pseudo[i] > 0.0 ? pseudo[i] * natural_log(probability[i]) : 0.0;
  return total;
}

}  // namespace

bool MixtureEM::maximize() {
  if (!classes.fixed) {
    Vector share(n_classes);
    if (!maximize_levels(class_weights(), classes.pseudo.data(), n_classes, share.data())) return false;
    for (size_t k = 0; k < n_classes; k++) classes.log_prior[k] = natural_log(share[k]);
  }
  for (size_t b = 0; b < gaussians.size(); b++) {
    if (!maximize_gaussians(gaussians[b], gaussian_sums(b), n_classes)) return false;
  }
  for (size_t b = 0; b < codes.size(); b++) {
    const Vector counts = code_sums(b);
    CodeBlock& block = codes[b];
    size_t at = 0;
    for (size_t k = 0; k < n_classes; k++) {
      for (const uint32_t size : block.sizes) {
        if (!maximize_levels(&counts[at], &block.pseudo[at], size, &block.probability[at])) return false;
        at += size;
      }
    }
  }
  return derive();
}

bool MixtureEM::derive() {
  for (GaussianBlock& block : gaussians) {
    if (!(block.full ? derive_full(block, n_classes) : derive_diagonal(block, n_classes))) return false;
  }
  for (CodeBlock& block : codes) derive_codes(block, n_classes, padded_classes());
  return true;
}

double MixtureEM::log_prior() const {
  double total = 0.0;
  if (!classes.fixed) {
    Vector share(n_classes);
    for (size_t k = 0; k < n_classes; k++) share[k] = exponential(classes.log_prior[k]);
    total += log_prior_of(classes.pseudo, share.data());
  }
  for (const GaussianBlock& block : gaussians) total += block.has_prior ? log_prior_of(block, n_classes) : 0.0;
  for (const CodeBlock& block : codes) total += log_prior_of(block.pseudo, block.probability.data());
  return total;
}

MixtureParameters MixtureEM::parameters() const {
  MixtureParameters found{classes.log_prior, {}, {}, {}};
  for (const GaussianBlock& block : gaussians) {
    found.mean.push_back(block.mean);
    found.spread.push_back(block.spread);
  }
  for (const CodeBlock& block : codes) found.probability.push_back(block.probability);
  return found;
}

bool MixtureEM::set_parameters(const MixtureParameters& given) {
  classes.log_prior = given.log_prior;
  for (size_t b = 0; b < gaussians.size(); b++) {
    gaussians[b].mean = given.mean[b];
    gaussians[b].spread = given.spread[b];
  }
  for (size_t b = 0; b < codes.size(); b++) codes[b].probability = given.probability[b];
  return derive();
}

}  // namespace tallybayes
