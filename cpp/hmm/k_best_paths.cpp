// The most probable paths of every sequence (list Viterbi).
//
// Every state of a step keeps its best paths. Those to a state of the next step come from the previous states with the
// best heads, at most as many as there are paths: these are merged, and no other state is read. Previous states are
// processed in descending order of their scores, so that the search stops when even the most probable transition could
// not improve the result. If the pointers need too much memory, only the scores at the start of every segment are
// stored in the forward pass.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hmm/hmm_model.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class SeveralWorker {
 public:
  SeveralWorker(const ChainKernels& kernels, const ChainModel& model, size_t n_paths, int64_t* paths, double* score)
      : kernels_(kernels), model_(model), k_(n_paths), n_(model.input.n_states), paths_(paths), score_(score),
        order_(n_), likeliest_(n_) {
    std::iota(order_.begin(), order_.end(), uint32_t{0});
    for (size_t j = 0; j < n_; j++) {
      const double* into = model.turned.logs.data() + j * model.pitch;
      likeliest_[j] = *std::max_element(into, into + n_);
    }
  }

  bool process(size_t first, size_t last) {
    for (size_t sequence = first; sequence < last; sequence++) {
      if (!find(sequence)) return false;
    }
    return true;
  }

 private:
  // The best remaining path of a state, and the number of its paths already used.
  struct Head {
    double score;
    uint32_t from, used;
    bool before(const Head& other) const { return score > other.score || (score == other.score && from < other.from); }
  };

  bool find(size_t sequence) {
    n_steps_ = model_.length(sequence);
    first_step_ = model_.first_step(sequence);
    std::fill_n(score_ + sequence * k_, k_, -infinity);
    if (n_steps_ == 0) {
      score_[sequence * k_] = 0.0;  // one path, without steps
      return true;
    }
    constexpr size_t most_bytes = size_t{1} << 25;
    const size_t step_bytes = n_ * k_ * sizeof(uint32_t) + model_.pitch * sizeof(double);
    const auto root = static_cast<size_t>(std::sqrt(static_cast<double>(n_steps_)));
    segment_ = std::min(n_steps_, std::max(most_bytes / step_bytes, root) + 1);
    const size_t n_segments = (n_steps_ - 1) / segment_ + 1;
    scores_.of(n_ * k_);
    better_.of(n_ * k_);
    kept_.of(n_segments * n_ * k_);
    pointers_.of(segment_ * n_ * k_);
    taken_.of(n_steps_);
    std::fill_n(maxima_.of(n_steps_), n_steps_, 0.0);
    heads_.resize(std::min(k_, n_) + 1);
    for (size_t segment = 0; segment < n_segments; segment++) {
      if (segment > 0) std::copy_n(scores_.data(), n_ * k_, kept_.data() + segment * n_ * k_);
      if (!forward(segment)) return false;
    }
    choose(sequence);
    for (size_t segment = n_segments; segment-- > 0;) {
      if (segment + 1 < n_segments) {  // its pointers were overwritten since
        if (segment > 0) std::copy_n(kept_.data() + segment * n_ * k_, n_ * k_, scores_.data());
        forward(segment);
      }
      trace(segment);
    }
    return true;
  }

  size_t first_of(size_t segment) const { return segment * segment_; }
  size_t last_of(size_t segment) const { return std::min(n_steps_, (segment + 1) * segment_); }

  bool forward(size_t segment) {
    const size_t first = first_of(segment), n = last_of(segment) - first;
    const ChainInput& input = model_.input;
    if (input.coded()) {
      if (!kernels_.load_levels(input.codes, first_step_ + first, n, static_cast<uint32_t>(input.n_levels),
                                codes_.of(n))) {
        return false;
      }
    } else if (!kernels_.shift_rows(input.emission + (first_step_ + first) * n_, n, n_, rows_.of(n * model_.pitch),
                                    model_.pitch, maxima_.data() + first)) {
      return false;
    }
    for (size_t t = 0; t < n; t++) {
      const double* row = input.coded() ? model_.table.logs.data() + codes_.data()[t] * model_.pitch
                                        : rows_.data() + t * model_.pitch;
      first + t == 0 ? begin(row) : advance(first + t, row, pointers_.data() + t * n_ * k_);
    }
    return true;
  }

  // Scores are [rank][state].
  void begin(const double* row) {
    std::fill_n(scores_.data(), n_ * k_, -infinity);
    for (size_t j = 0; j < n_; j++) scores_.data()[j] = model_.start.logs.data()[j] + row[j];
    taken_.data()[0] = 0.0;
  }

  void advance(size_t step, const double* row, uint32_t* pointers) {
    const double* scores = scores_.data();
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    double taken = step % chain_interval == 0 ? scores[order_[0]] : 0.0;
    if (taken == -infinity) taken = 0.0;
    taken_.data()[step] = taken;
    double* better = better_.data();
    for (size_t j = 0; j < n_; j++) {
      const double* into = model_.turned.logs.data() + j * model_.pitch;
      size_t n_heads = gather(scores, into, likeliest_[j]);
      Head* heads = heads_.data();
      for (size_t rank = 0; rank < k_; rank++) {
        if (n_heads == 0) {
          better[rank * n_ + j] = -infinity;
          pointers[j * k_ + rank] = 0;
          continue;
        }
        Head best = heads[0];
        better[rank * n_ + j] = best.score + (row[j] - taken);
        pointers[j * k_ + rank] = static_cast<uint32_t>(size_t{best.from} * k_ + best.used);
        best.used++;
        best.score = best.used < k_ ? scores[best.used * n_ + best.from] + into[best.from] : -infinity;
        size_t at = 0;
        for (; at + 1 < n_heads && heads[at + 1].before(best); at++) heads[at] = heads[at + 1];
        heads[at] = best;
        if (best.score == -infinity) n_heads--;  // it is the last one: all others are possible
      }
    }
    std::swap(scores_, better_);
  }

  // The states with the best heads to another state, in order; at most as many as there are paths.
  size_t gather(const double* scores, const double* into, double likeliest) {
    Head* heads = heads_.data();
    const size_t most = std::min(k_, n_);
    size_t n_heads = 0;
    Head last{-infinity, 0, 0};  // must be less than the previous one
    for (const uint32_t i : order_) {
      if (scores[i] + likeliest < last.score || scores[i] == -infinity) break;
      const Head head{scores[i] + into[i], i, 0};
      if (!head.before(last)) continue;
      size_t at = n_heads < most ? n_heads++ : n_heads - 1;
      for (; at > 0 && head.before(heads[at - 1]); at--) heads[at] = heads[at - 1];
      heads[at] = head;
      if (n_heads == most) last = heads[n_heads - 1];
    }
    return n_heads;
  }

  // The last states, and the scores; ties are broken by the lowest state.
  void choose(size_t sequence) {
    const double *scores = scores_.data(), *end = model_.end.logs.data();
    auto at = [&](size_t place) { return scores[place % k_ * n_ + place / k_] + end[place / k_]; };
    std::vector<size_t> places(n_ * k_);
    std::iota(places.begin(), places.end(), size_t{0});
    const auto middle = places.begin() + static_cast<ptrdiff_t>(k_);
    std::partial_sort(places.begin(), middle, places.end(), [&](size_t a, size_t b) {
      return at(a) > at(b) || (at(a) == at(b) && a < b);
    });
    const double taken = careful_sum(n_steps_, [&](size_t t) { return taken_.data()[t]; }) +
                         careful_sum(n_steps_, [&](size_t t) { return maxima_.data()[t]; });
    places_.clear();
    for (auto place = places.begin(); place != middle && at(*place) > -infinity; ++place) {
      score_[sequence * k_ + places_.size()] = at(*place) + taken;
      places_.push_back(static_cast<uint32_t>(*place));
    }
  }

  void trace(size_t segment) {
    const size_t first = first_of(segment);
    for (size_t t = last_of(segment); t-- > first;) {
      int64_t* path = paths_ + (first_step_ + t) * k_;
      std::fill_n(path, k_, int64_t{-1});
      const uint32_t* pointers = pointers_.data() + (t - first) * n_ * k_;
      for (size_t r = 0; r < places_.size(); r++) {
        path[r] = static_cast<int64_t>(places_[r] / k_);
        if (t > 0) places_[r] = pointers[places_[r]];
      }
    }
  }

  const ChainKernels& kernels_;
  const ChainModel& model_;
  size_t k_, n_;
  int64_t* paths_;
  double* score_;
  size_t n_steps_ = 0, first_step_ = 0, segment_ = 1;
  std::vector<uint32_t> order_;  // states, best first
  Vector likeliest_;  // most probable transition to every state
  std::vector<Head> heads_;
  std::vector<uint32_t> places_;  // state · k + rank of every path
  Room<uint32_t> codes_, pointers_;
  Room<double> rows_, maxima_, taken_, kept_, scores_, better_;
};

}  // namespace

bool chain_best_paths(const ChainKernels& kernels, const ChainInput& input, size_t threads, size_t n_paths,
                      int64_t* paths, double* score) {
  const ChainModel model(input, kernels.lanes);
  const std::vector<size_t> parts = chain_parts(model, 0);
  const size_t n_parts = parts.size() - 1;
  const size_t used = choose_threads(threads, n_parts, chain_cells(model) * static_cast<double>(n_paths));
  auto make = [&] { return SeveralWorker(kernels, model, n_paths, paths, score); };
  auto process = [&](SeveralWorker& worker, size_t part, Order&) {
    return worker.process(parts[part], parts[part + 1]);
  };
  return run_parts(n_parts, used, 1, make, process, [](SeveralWorker&) {});
}

}  // namespace tallybayes
