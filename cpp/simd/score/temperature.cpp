// Temperature scaling with contamination: the log likelihood of the true classes and its derivatives, in one pass.
#include "simd/log_exp.h"
#include "simd/score/loops.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

void sum_tempered(const TemperedRows& rows, double sharpness, double doubt, double* out) {
  Doubles sums[tempered_sums][vectors_of_eight] = {};
  const double steep = sharpness * sharpness, trust = 1.0 - doubt, spread = doubt * trust;
  for (size_t row = 0; row < rows.n_rows; row += 8) {
    for (size_t v = 0; v < vectors_of_eight; v++) {
      const size_t at = row + v * lanes;
      Doubles total = {}, first = {}, second = {};
      for (size_t k = 0; k < rows.n_classes; k++) {
        const Doubles score = load(rows.scores + k * rows.n_rows + at);
        const Doubles p = exp_of_negative(score * sharpness);
        const Doubles weighted = p * score;
        total += p;
        first += weighted;
        second = multiply_add(weighted, score, second);
      }
      const Doubles truth = load(rows.truth + at), weight = load(rows.weights + at);
      const Doubles scaled = exp_of_negative(truth * sharpness) / total * trust;
      const Doubles mean = first / total, square = second / total;
      const Doubles mixture = scaled + load(rows.base + at) * doubt;
      const Mask bits = (Mask)mixture;
      const Doubles own = scaled / mixture;  // posterior probability of the model against the contamination
      const Doubles torn = own * (1.0 - own), lean = (truth - mean) * sharpness;
      sums[0][v] = multiply_add(weight, log_product(mantissa_of(bits) - 1.0, exponent_of(bits)), sums[0][v]);
      sums[1][v] = multiply_add(weight, own * lean, sums[1][v]);
      sums[2][v] = multiply_add(weight, (1.0 - own) - doubt, sums[2][v]);
      sums[3][v] = multiply_add(weight, torn * lean * lean + own * (lean - (square - mean * mean) * steep), sums[3][v]);
      sums[4][v] = multiply_add(weight, torn * lean, sums[4][v]);
      sums[5][v] = multiply_add(weight, torn - spread, sums[5][v]);
    }
  }
  for (size_t s = 0; s < tempered_sums; s++) out[s] = spread_sum(sums[s])[0];
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
