// EM for mixtures of Gaussian and categorical columns: both steps in one pass over blocks of rows, without a matrix of
// responsibilities. Only the sums of a part of the rows are kept, and parts are added in order.
#pragma once

#include "core/driver_types.h"
#include "score/score_kernels.h"

namespace tallybayes {

// Gaussian columns. Numbers of classes are [class][column]; those of variances have length 1 along tied axes. With n
// rows of mean m and scatter S, the variance is (scale + S + shrinkage of m) / (rows + n).
struct GaussianBlock {
  Table table;
  bool full = false, tied_classes = false, tied_columns = false, has_prior = false;
  Vector center;              // of every column; means and locations are relative to it
  Vector least;               // variances up to this are rounding errors, without a prior
  Vector location, strength;  // prior of the means
  Vector rows, scale;         // prior of the variances, or of covariance matrices
  Vector mean, spread;        // parameters: of every class, also if tied; spread: variances or covariance matrices

  size_t n_columns() const { return table.n_columns; }
  size_t width() const { return full ? n_columns() * n_columns() : n_columns(); }

  // Derived from the parameters.
  Vector factor, shift, norm;  // see NormalTerms; of a tied covariance, for cells that its inverse root multiplied
  std::vector<Vector> packed, root_shift;  // of full covariances: inverse Cholesky factors
  Vector log_norm;
  bool common = false;  // whether sums of all classes are about the center, which then costs no digits
  // The scatter about the center of a tied covariance: that of all rows, which depends on no responsibilities. With
  // it, an E-step only sums the rows of every class (`light`).
  Vector total;
  bool light = false;
  bool tied_full() const { return full && tied_classes; }
};

// Categorical columns. [class][level], the levels of all columns side by side.
struct CodeBlock {
  Table table;
  std::vector<uint32_t> sizes;
  Vector pseudo;       // pseudo-counts
  Vector probability;  // parameters
  std::vector<Vector> log_table;  // of every column [code][class], padded; the last code is the missing one
  size_t n_levels() const;
};

struct ClassBlock {
  bool fixed = false;  // whether log_prior is given
  Vector pseudo;       // pseudo-counts of the classes
  Vector log_prior;
};

struct MixtureParameters {
  Vector log_prior;
  std::vector<Vector> mean, spread, probability;
};

// Sums about `about`, which is relative to the center; `weight` has one number for each class if no cell is missing.
struct GaussianSums {
  bool any_missing = false;
  Vector about, weight, first, second;
};

struct MixtureRun {
  bool good = false;  // false: a variance collapsed, a class lost its rows, or a row is impossible
  bool converged = false;
  std::vector<double> history;
};

class MixtureEM {
 public:
  size_t n_rows = 0, n_classes = 0;
  std::vector<GaussianBlock> gaussians;
  std::vector<CodeBlock> codes;
  ClassBlock classes;
  const double* weights = nullptr;  // nullptr: all 1
  const int64_t* labels = nullptr;  // −1: unknown; nullptr: all unknown
  size_t threads = 0;

  MixtureEM(const Kernels& kernels, const ScoreKernels& score) : kernels_(kernels), score_(score) {}

  // E-step under the current parameters. `hard`: all of a row's weight goes to its best class. False if a row is
  // impossible, or a cell is missing in a full block. `light`: without products of tied columns.
  bool expect(bool hard, bool light = false);
  // M-step. False if a class has no rows or no density.
  bool maximize();
  // Both in turn until convergence, from the current sums. `before_step` is called before every iteration.
  template <class Before>
  MixtureRun iterate(size_t max_iter, double tol, Before before_step) {
    MixtureRun run;
    while (run.history.size() < max_iter && before_step()) {
      const MixtureParameters before = parameters();
      const Vector sums_before = sums_;
      const bool seen_before = any_missing_;
      if (!maximize() || !expect(false, true)) return run;
      const double objective = log_likelihood() + log_prior();
      if (!run.history.empty() && !(objective >= run.history.back())) {  // by rounding errors
        if (!set_parameters(before)) return run;
        sums_ = sums_before;
        any_missing_ = seen_before;
        run.history.push_back(run.history.back());
        run.converged = true;
        break;
      }
      const double rise = run.history.empty() ? tol + 1.0 : objective - run.history.back();
      run.history.push_back(objective);
      run.converged = rise < tol || rise <= 0.0;
      if (run.converged) break;
    }
    run.good = !run.history.empty() && (!any_light() || expect(false));
    return run;
  }

  MixtureParameters parameters() const;
  // False if a covariance is not positive definite.
  bool set_parameters(const MixtureParameters&);
  double log_prior() const;  // up to a constant
  double log_likelihood() const { return sums_[n_classes]; }
  double entropy() const { return sums_[n_classes + 1]; }
  const double* class_weights() const { return sums_.data(); }
  GaussianSums gaussian_sums(size_t block) const;  // without the second moments of a light block
  Vector code_sums(size_t block) const;  // [class][level]

 private:
  struct Worker;
  struct Layout;
  void reserve();
  bool derive();
  bool any_light() const;
  void score_chunk(Worker&, size_t first, size_t n) const;
  bool share_chunk(Worker&, size_t first, size_t n, bool hard) const;
  bool load_gaussians(Worker&, size_t first, size_t n) const;
  void sum_chunk(Worker&, size_t first, size_t n) const;
  size_t padded_classes() const { return (n_classes + 7) / 8 * 8; }

  const Kernels& kernels_;
  const ScoreKernels& score_;
  Vector sums_;  // class weights, log likelihood, entropy, then those of the blocks from their offsets on
  std::vector<size_t> gaussian_offset_, code_offset_;
  bool any_missing_ = false;
  Vector ones_, zeros_;
};

// Lower Cholesky factor of a d × d matrix, in place; false if it is not positive definite.
bool factorize(double* matrix, size_t d);
// Inverse of a lower triangular matrix.
Vector invert_triangle(const double* root, size_t d);

}  // namespace tallybayes
