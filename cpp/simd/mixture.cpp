// Inner loops of EM for mixtures: a chunk of rows at a time, its cells column by column, its scores class by class.
#include "simd/log_exp.h"
#include "simd/functions.h"

namespace tallybayes {
namespace TALLYBAYES_TIER {

namespace {

constexpr size_t strip_vectors = 8;  // independent sums, which hide the latency of a multiply-add
constexpr size_t strip_rows = strip_vectors * lanes;
static_assert(mixture_rows % 64 == 0, "a chunk is a whole number of strips");

template <bool careful>
void score_columns(const double* cells, size_t n_columns, const NormalTerms& terms, double* scores) {
  for (size_t start = 0; start < mixture_rows; start += strip_rows) {
    Doubles squares[strip_vectors] = {}, norms[strip_vectors] = {};
    if (!careful) {
      double total = 0.0;
      for (size_t j = 0; j < n_columns; j++) total += terms.norm[j];
      for (size_t v = 0; v < strip_vectors; v++) norms[v] = repeat(total);
    }
    for (size_t j = 0; j < n_columns; j++) {
      const Doubles factor = repeat(terms.factor[j]), shift = repeat(-terms.shift[j]), norm = repeat(terms.norm[j]);
      for (size_t v = 0; v < strip_vectors; v++) {
        const Doubles x = load(cells + j * mixture_rows + start + v * lanes);
        Doubles z = multiply_add(x, factor, shift);
        if (careful) {
          const Mask present = x == x;
          z = keep(z, present);
          norms[v] += keep(norm, present);
        }
        squares[v] = multiply_add(z, z, squares[v]);
      }
    }
    for (size_t v = 0; v < strip_vectors; v++) {
      double* at = scores + start + v * lanes;
      store(at, (load(at) + norms[v]) - 0.5 * squares[v]);
    }
  }
}

// The sums of neighboring columns of one class, eight partial sums each, so that every tier adds in the same order.
template <bool careful, size_t together>
void sum_columns(const double* cells, const double* weights, const NormalTerms& terms, const MixtureSums& sums) {
  constexpr size_t parts = vectors_of_eight;
  Doubles factor[together], shift[together];
  Doubles weight[together][parts], first[together][parts], second[together][parts];
  for (size_t c = 0; c < together; c++) {
    factor[c] = repeat(terms.factor[c]);
    shift[c] = repeat(-terms.shift[c]);
    for (size_t p = 0; p < parts; p++) {
      if (careful) weight[c][p] = load(sums.weight + 8 * c + p * lanes);
      first[c][p] = load(sums.first + 8 * c + p * lanes);
      second[c][p] = load(sums.second + 8 * c + p * lanes);
    }
  }
  for (size_t i = 0; i < mixture_rows; i += 8) {
    for (size_t p = 0; p < parts; p++) {
      const size_t row = i + p * lanes;
      const Doubles w = load(weights + row);
      for (size_t c = 0; c < together; c++) {
        const Doubles x = load(cells + c * mixture_rows + row);
        Doubles z = multiply_add(x, factor[c], shift[c]);
        if (careful) {
          const Mask present = x == x;
          z = keep(z, present);
          weight[c][p] += keep(w, present);
        }
        const Doubles moved = w * z;
        first[c][p] += moved;
        second[c][p] = multiply_add(moved, z, second[c][p]);
      }
    }
  }
  for (size_t c = 0; c < together; c++) {
    for (size_t p = 0; p < parts; p++) {
      if (careful) store(sums.weight + 8 * c + p * lanes, weight[c][p]);
      store(sums.first + 8 * c + p * lanes, first[c][p]);
      store(sums.second + 8 * c + p * lanes, second[c][p]);
    }
  }
}

template <bool careful>
void sum_class(const double* cells, size_t n_columns, const double* weights, const NormalTerms& terms,
               const MixtureSums& sums) {
  constexpr size_t together = lanes == 8 ? 4 : lanes == 4 ? 2 : 1;
  auto from = [&](size_t j) { return NormalTerms{terms.factor + j, terms.shift + j, terms.norm + j}; };
  auto to = [&](size_t j) {
    return MixtureSums{careful ? sums.weight + 8 * j : nullptr, sums.first + 8 * j, sums.second + 8 * j};
  };
  size_t j = 0;
  for (; j + together <= n_columns; j += together) {
    sum_columns<careful, together>(cells + j * mixture_rows, weights, from(j), to(j));
  }
  for (; j < n_columns; j++) sum_columns<careful, 1>(cells + j * mixture_rows, weights, from(j), to(j));
}

}  // namespace

bool center_cells(double* cells, size_t n_columns, const double* center) {
  Mask present = ~Mask{};
  for (size_t j = 0; j < n_columns; j++) {
    const Doubles middle = repeat(center[j]);
    for (size_t i = 0; i < mixture_rows; i += lanes) {
      double* at = cells + j * mixture_rows + i;
      const Doubles x = load(at);
      present &= x == x;
      store(at, x - middle);
    }
  }
  return !all(present);
}

void score_normals(const double* cells, size_t n_columns, const NormalTerms& terms, bool missing, double* scores) {
  missing ? score_columns<true>(cells, n_columns, terms, scores)
          : score_columns<false>(cells, n_columns, terms, scores);
}

void sum_normals(const double* cells, size_t n_columns, const double* weights, const NormalTerms& terms,
                 const MixtureSums& sums) {
  sums.weight ? sum_class<true>(cells, n_columns, weights, terms, sums)
              : sum_class<false>(cells, n_columns, weights, terms, sums);
}

namespace {

// Σw·x and Σw·x² of one column for neighboring classes: the squares are computed once for all of them.
template <size_t together>
void sum_powers(const double* cells, const double* weights, double* first, double* second, size_t pitch) {
  constexpr size_t parts = vectors_of_eight;
  Doubles sum[together][parts], squares[together][parts];
  for (size_t k = 0; k < together; k++) {
    for (size_t p = 0; p < parts; p++) {
      sum[k][p] = load(first + k * pitch + p * lanes);
      squares[k][p] = load(second + k * pitch + p * lanes);
    }
  }
  for (size_t i = 0; i < mixture_rows; i += 8) {
    for (size_t p = 0; p < parts; p++) {
      const Doubles x = load(cells + i + p * lanes), square = x * x;
      for (size_t k = 0; k < together; k++) {
        const Doubles w = load(weights + k * mixture_rows + i + p * lanes);
        sum[k][p] = multiply_add(w, x, sum[k][p]);
        squares[k][p] = multiply_add(w, square, squares[k][p]);
      }
    }
  }
  for (size_t k = 0; k < together; k++) {
    for (size_t p = 0; p < parts; p++) {
      store(first + k * pitch + p * lanes, sum[k][p]);
      store(second + k * pitch + p * lanes, squares[k][p]);
    }
  }
}

}  // namespace

void sum_squares(const double* cells, size_t n_columns, const double* weights, size_t n_classes, double* first,
                 double* second, size_t pitch) {
  for (size_t j = 0; j < n_columns; j++, cells += mixture_rows, first += 8, second += 8) {
    size_t k = 0;
    auto sum_some = [&](auto sum, size_t together) {  // as many classes as registers permit
      for (; k + together <= n_classes; k += together) {
        sum(cells, weights + k * mixture_rows, first + k * pitch, second + k * pitch, pitch);
      }
    };
    if (lanes == 8) sum_some(sum_powers<lanes == 8 ? 8 : 1>, 8);
    if (lanes == 8) sum_some(sum_powers<lanes == 8 ? 4 : 1>, 4);
    if (lanes >= 4) sum_some(sum_powers<lanes >= 4 ? 2 : 1>, 2);
    sum_some(sum_powers<1>, 1);
  }
}

void multiply_triangle(const double* cells, size_t n_blocks, const double* packed, double* out) {
  constexpr size_t vectors = lanes == 8 ? 4 : 2;
  const double* start = packed;
  for (size_t row = 0; row < mixture_rows; row += vectors * lanes) {
    packed = start;
    for (size_t block = 0; block < n_blocks; block++) {
      Doubles sums[length_block][vectors] = {};
      for (size_t column = 0; column < (block + 1) * length_block; column++, packed += length_block) {
        Doubles x[vectors];
        for (size_t v = 0; v < vectors; v++) x[v] = load(cells + column * mixture_rows + row + v * lanes);
        for (size_t q = 0; q < length_block; q++) {
          const Doubles a = repeat(packed[q]);
          for (size_t v = 0; v < vectors; v++) sums[q][v] = multiply_add(a, x[v], sums[q][v]);
        }
      }
      for (size_t q = 0; q < length_block; q++) {
        for (size_t v = 0; v < vectors; v++) {
          store(out + (block * length_block + q) * mixture_rows + row + v * lanes, sums[q][v]);
        }
      }
    }
  }
}

// The scores become the probabilities of the classes; also log p(row), and the entropy of the probabilities.
void share_rows(double* scores, size_t n_classes, double* density, double* entropy) {
  for (size_t i = 0; i < mixture_rows; i += lanes) {
    Doubles best = load(scores + i);
    for (size_t k = 1; k < n_classes; k++) {
      const Doubles score = load(scores + k * mixture_rows + i);
      best = choose(score > best, score, best);
    }
    Doubles rest = repeat(-1.0), mean = {};  // the sum without the 1 of the best class
    for (size_t k = 0; k < n_classes; k++) {
      double* at = scores + k * mixture_rows + i;
      const Doubles below = load(at) - best, part = exp_of_negative(below);
      rest += part;
      mean += keep(part * below, below > -708.0);
      store(at, part);
    }
    const Doubles total = rest + 1.0;
    Doubles exponent = {};
    move_exponent(rest, exponent);
    const Doubles log_total = log_product(rest, exponent), share = 1.0 / total;
    for (size_t k = 0; k < n_classes; k++) {
      double* at = scores + k * mixture_rows + i;
      store(at, load(at) * share);
    }
    store(density + i, best + log_total);
    store(entropy + i, log_total - mean * share);
  }
}

}  // namespace TALLYBAYES_TIER
}  // namespace tallybayes
