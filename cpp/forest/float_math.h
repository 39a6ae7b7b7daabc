// exp and log in single precision, made of sums and products only: vectorized, and the same bits on every machine
// (polynomials of Cephes, Moshier 1989).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tallybayes {
namespace {

// exp(x) of numbers up to 0.
inline float exp_of_negative(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // rounds to an integer
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float fraction = (p * (r * r) + r) + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return fraction * power;
}

// log(x) of normal positive numbers.
inline float log_of_positive(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  constexpr int32_t half_root = 0x3f3504f3;  // √½
  const int32_t above = bits - half_root;
  const float exponent = static_cast<float>(above >> 23);
  bits = (above & 0x007fffff) + half_root;
  float m;
  std::memcpy(&m, &bits, sizeof(m));
  m = m - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m + -1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m + -1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m + -1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m + -2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float y = ((p * m) * z + exponent * -2.12194440e-4f) - z * 0.5f;
  return (m + y) + exponent * 0.693359375f;
}

// Class probabilities of log scores.
inline void softmax(const float* score, size_t n_classes, float* proba) {
  float most = score[0];
  for (size_t c = 1; c < n_classes; c++) most = score[c] > most ? score[c] : most;
  for (size_t c = 0; c < n_classes; c++) proba[c] = exp_of_negative(score[c] - most);
  float total = 0;
  for (size_t c = 0; c < n_classes; c++) total += proba[c];
  const float scale = 1.0f / total;
  for (size_t c = 0; c < n_classes; c++) proba[c] *= scale;
}

}  // namespace
}  // namespace tallybayes
