// Class probabilities and log ratios of many rows, by class: plain loops that the compiler turns into vectors.
#include "forest/float_math.h"
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

void softmax_rows(const float* score, size_t n, size_t n_classes, float* proba) {
  constexpr size_t width = 64;
  for (size_t first = 0; first < n; first += width) {
    const size_t m = n - first < width ? n - first : width;
    float most[width], total[width];
    for (size_t i = 0; i < m; i++) most[i] = score[first + i], total[i] = 0;
    for (size_t c = 1; c < n_classes; c++) {
      const float* s = score + c * n + first;
      for (size_t i = 0; i < m; i++) most[i] = s[i] > most[i] ? s[i] : most[i];
    }
    for (size_t c = 0; c < n_classes; c++) {
      const float* s = score + c * n + first;
      float* p = proba + c * n + first;
      for (size_t i = 0; i < m; i++) {
        p[i] = exp_of_negative(s[i] - most[i]);
        total[i] += p[i];
      }
    }
    for (size_t i = 0; i < m; i++) total[i] = 1.0f / total[i];
    for (size_t c = 0; c < n_classes; c++) {
      float* p = proba + c * n + first;
      for (size_t i = 0; i < m; i++) p[i] *= total[i];
    }
  }
}

void fixed_rows(const float* x, size_t n, int32_t* out) {
  for (size_t i = 0; i < n; i++) out[i] = static_cast<int32_t>(x[i] * 65536.0f + 0.5f);
}

void add_log_ratios(const double* n_in, const double* n_out, const double* e_in, const double* e_out, size_t n,
                    double weight, double strength, float rate, float* sum) {
  for (size_t i = 0; i < n; i++) {
    const double high = (n_in[i] + weight * n_out[i]) + strength, low = (e_in[i] + weight * e_out[i]) + strength;
    sum[i] += rate * log_of_positive(static_cast<float>(high / low));
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
