// Squared Mahalanobis distances: rows are multiplied by a triangular matrix and the squares of the result are summed.
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

// As many sums as registers permit, with a vector of each row panel.
constexpr size_t vectors = lanes == 8 ? 4 : 2;
static_assert(length_panel % (vectors * lanes) == 0, "a panel is a whole number of strips");

// The squares of four products at a time, for the rows of one strip. The matrix is packed in blocks of four rows,
// [block][column][row of the block], with zeros above the diagonal, so that all blocks have the same shape.
inline void add_squares(const double* strip, size_t n_blocks, const double* packed, const double* shift, double* out) {
  Doubles total[vectors] = {};
  for (size_t block = 0; block < n_blocks; block++) {
    Doubles sums[length_block][vectors];
    for (size_t q = 0; q < length_block; q++) {
      for (size_t v = 0; v < vectors; v++) sums[q][v] = repeat(-shift[block * length_block + q]);
    }
    const size_t n_columns = (block + 1) * length_block;
    for (size_t column = 0; column < n_columns; column++, packed += length_block) {
      Doubles x[vectors];
      for (size_t v = 0; v < vectors; v++) x[v] = load(strip + column * length_panel + v * lanes);
      for (size_t q = 0; q < length_block; q++) {
        const Doubles a = repeat(packed[q]);
        for (size_t v = 0; v < vectors; v++) sums[q][v] = multiply_add(a, x[v], sums[q][v]);
      }
    }
    for (size_t q = 0; q < length_block; q++) {
      for (size_t v = 0; v < vectors; v++) total[v] = multiply_add(sums[q][v], sums[q][v], total[v]);
    }
  }
  for (size_t v = 0; v < vectors; v++) store(out + v * lanes, total[v]);
}

}  // namespace

void squared_lengths(const double* panel, size_t n_blocks, const double* packed, const double* shift, double* out) {
  for (size_t strip = 0; strip < length_panel; strip += vectors * lanes) {
    add_squares(panel + strip, n_blocks, packed, shift, out + strip);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
