// Cholesky factors of covariance matrices.
#include <cmath>

#include "mixture/mixture.h"

namespace tallybayes {

bool factorize(double* matrix, size_t d) {
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j <= i; j++) {
      double rest = matrix[i * d + j];
      for (size_t k = 0; k < j; k++) rest -= matrix[i * d + k] * matrix[j * d + k];
      if (i == j) {
        if (!(rest > 0.0) || !std::isfinite(rest)) return false;
        matrix[i * d + i] = std::sqrt(rest);
      } else {
        matrix[i * d + j] = rest / matrix[j * d + j];
      }
    }
    for (size_t j = i + 1; j < d; j++) matrix[i * d + j] = 0.0;
  }
  return true;
}

Vector invert_triangle(const double* root, size_t d) {
  Vector inverse(d * d, 0.0);
  for (size_t i = 0; i < d; i++) {
    inverse[i * d + i] = 1.0 / root[i * d + i];
    for (size_t j = 0; j < i; j++) {
      double sum = 0.0;
      for (size_t k = j; k < i; k++) sum -= root[i * d + k] * inverse[k * d + j];
      inverse[i * d + j] = sum / root[i * d + i];
    }
  }
  return inverse;
}

}  // namespace tallybayes
