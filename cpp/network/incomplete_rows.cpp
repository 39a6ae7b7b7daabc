// Message passing in the small clique trees of components: up to the root, which gives the probability of the observed
// values, and down.
#include "network/incomplete_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/driver_types.h"

namespace tallybayes {

namespace {

constexpr double least = 1e-100;  // smaller sums of products may have underflowed: they are repeated in logarithms

// Calls visit(state, offset, number of states that follow, distance of their offsets) for all states of a clique.
template <class Visit>
inline void walk(const SmallClique& clique, const int64_t* strides, uint32_t* at, Visit visit) {
  const size_t last = clique.shape.size() - 1, inner = clique.shape[last];
  const int64_t step = strides[last];
  int64_t offset = 0;
  std::fill(at, at + last, 0);
  for (size_t state = 0;;) {
    visit(state, offset, inner, step);
    state += inner;
    if (state >= clique.n_states) return;
    for (size_t axis = last; axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < clique.shape[axis]) break;
      offset -= strides[axis] * static_cast<int64_t>(clique.shape[axis]);
      at[axis] = 0;
    }
  }
}

struct Linear {
  static constexpr double one = 1.0;
  static double times(double a, double b) { return a * b; }
  static double share(double state, double total) { return total > 0 ? state / total : 0.0; }
};

struct Logarithmic {
  static constexpr double one = 0.0;
  static double times(double a, double b) { return a + b; }
  static double share(double state, double total) { return total > -INFINITY ? std::exp(state - total) : 0.0; }
};

class Worker {
 public:
  Worker(const double* tables, const double* logs, size_t n_states, size_t n_messages, size_t n_axes)
      : tables_(tables), logs_(logs), states_(n_states), messages_(n_messages), tops_(n_messages), at_(n_axes + 1) {}

  // The log probability of the observed values; afterwards `states` are the posteriors of all cliques, if requested.
  double solve(const Pattern& pattern, const int64_t* bases, bool down) {
    double value = 0;
    if (!up<Linear>(pattern, bases, tables_, value)) {
      value = 0;
      if (!up<Logarithmic>(pattern, bases, logs_, value)) {
        if (down) std::fill(states_.begin(), states_.begin() + static_cast<ptrdiff_t>(pattern.n_states), 0.0);
        return -INFINITY;
      }
      if (down) spread<Logarithmic>(pattern);
    } else if (down) {
      spread<Linear>(pattern);
    }
    return value;
  }

  void count(const Pattern& pattern, const int64_t* bases, double weight, double* shared, double* by_row) {
    for (size_t k = 0; k < pattern.factors.size(); k++) {
      const FactorUse& use = pattern.factors[k];
      const SmallClique& clique = pattern.cliques[use.clique];
      const double* states = states_.data() + clique.first;
      double* target = (use.by_row ? by_row : shared) + bases[k];
      walk(clique, use.strides.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
        double* cell = target + offset;
        for (size_t i = 0; i < n; i++, cell += step) *cell += weight * states[state + i];
      });
    }
  }

  // The distribution of one variable, with contiguous levels.
  void marginal(const Pattern& pattern, const NodeUse& node, double* out) {
    const SmallClique& clique = pattern.cliques[node.clique];
    const double* states = states_.data() + clique.first;
    walk(clique, node.strides.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
      double* cell = out + offset;
      for (size_t i = 0; i < n; i++, cell += step) *cell += states[state + i];
    });
  }

 private:
  template <class Way>
  bool up(const Pattern& pattern, const int64_t* bases, const double* tables, double& value) {
    std::fill(states_.begin(), states_.begin() + static_cast<ptrdiff_t>(pattern.n_states), Way::one);
    for (size_t k = 0; k < pattern.factors.size(); k++) {
      const FactorUse& use = pattern.factors[k];
      const SmallClique& clique = pattern.cliques[use.clique];
      double* states = states_.data() + clique.first;
      const double* table = tables + bases[k];
      walk(clique, use.strides.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
        const double* cell = table + offset;
        for (size_t i = 0; i < n; i++, cell += step) states[state + i] = Way::times(states[state + i], *cell);
      });
    }
    for (const SmallClique& clique : pattern.cliques) {
      double* message = messages_.data() + clique.first_message;
      double* states = states_.data() + clique.first;
      if (clique.above < 0) {
        root_ = total<Way>(states, clique.n_states);
        value += std::is_same<Way, Linear>::value ? std::log(root_) : root_;
        return std::is_same<Way, Linear>::value ? root_ >= least : root_ > -INFINITY;
      }
      totals<Way>(clique, states, message);
      const double top = *std::max_element(message, message + clique.n_message);
      if (std::is_same<Way, Linear>::value ? !(top >= least) : !(top > -INFINITY)) return false;
      value += std::is_same<Way, Linear>::value ? std::log(top) : top;
      const SmallClique& upper = pattern.cliques[static_cast<size_t>(clique.above)];
      double* above = states_.data() + upper.first;
      for (size_t k = 0; k < clique.n_message; k++) {
        tops_[k] = std::is_same<Way, Linear>::value ? message[k] / top : message[k] - top;
      }
      walk(upper, clique.above_message.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
        const double* cell = tops_.data() + offset;
        for (size_t i = 0; i < n; i++, cell += step) above[state + i] = Way::times(above[state + i], *cell);
      });
    }
    return true;
  }

  template <class Way>
  static double total(const double* states, size_t n) {
    double sum = 0;
    if constexpr (std::is_same<Way, Linear>::value) {
      for (size_t k = 0; k < n; k++) sum += states[k];
      return sum;
    }
    const double top = *std::max_element(states, states + n);
    if (!(top > -INFINITY)) return top;
    for (size_t k = 0; k < n; k++) sum += std::exp(states[k] - top);
    return std::log(sum) + top;
  }

  // The sums over the variables that are not in the message.
  template <class Way>
  void totals(const SmallClique& clique, const double* states, double* message) {
    std::fill(message, message + clique.n_message, 0.0);
    if constexpr (std::is_same<Way, Linear>::value) {
      add(clique, clique.to_message.data(), states, message);
      return;
    }
    double* tops = tops_.data();
    std::fill(tops, tops + clique.n_message, -INFINITY);
    walk(clique, clique.to_message.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
      double* cell = tops + offset;
      for (size_t i = 0; i < n; i++, cell += step) *cell = std::max(*cell, states[state + i]);
    });
    walk(clique, clique.to_message.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
      for (size_t i = 0; i < n; i++, offset += step) {
        if (tops[offset] > -INFINITY) message[offset] += std::exp(states[state + i] - tops[offset]);
      }
    });
    for (size_t k = 0; k < clique.n_message; k++) {
      message[k] = tops[k] > -INFINITY ? std::log(message[k]) + tops[k] : -INFINITY;
    }
  }

  void add(const SmallClique& clique, const int64_t* strides, const double* states, double* sums) {
    walk(clique, strides, at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
      double* cell = sums + offset;
      for (size_t i = 0; i < n; i++, cell += step) *cell += states[state + i];
    });
  }

  // Downward pass: every clique given its separator, times the distribution of the separator.
  template <class Way>
  void spread(const Pattern& pattern) {
    for (size_t number = pattern.cliques.size(); number-- > 0;) {
      const SmallClique& clique = pattern.cliques[number];
      double* states = states_.data() + clique.first;
      if (clique.above < 0) {
        for (size_t k = 0; k < clique.n_states; k++) states[k] = Way::share(states[k], root_);
        continue;
      }
      const SmallClique& upper = pattern.cliques[static_cast<size_t>(clique.above)];
      double* shares = tops_.data();
      std::fill(shares, shares + clique.n_message, 0.0);
      add(upper, clique.above_message.data(), states_.data() + upper.first, shares);
      const double* message = messages_.data() + clique.first_message;
      walk(clique, clique.to_message.data(), at_.data(), [&](size_t state, int64_t offset, size_t n, int64_t step) {
        for (size_t i = 0; i < n; i++, offset += step) {
          states[state + i] = Way::share(states[state + i], message[offset]) * shares[offset];
        }
      });
    }
  }

  const double *tables_, *logs_;
  std::vector<double> states_, messages_, tops_;
  std::vector<uint32_t> at_;
  double root_ = 0;
};

struct Room {
  size_t n_states = 1, n_messages = 1, n_axes = 1;
  explicit Room(const std::vector<Pattern>& patterns) {
    for (const Pattern& pattern : patterns) {
      n_states = std::max(n_states, pattern.n_states);
      n_messages = std::max(n_messages, pattern.n_messages);
      for (const SmallClique& clique : pattern.cliques) n_axes = std::max(n_axes, clique.shape.size());
    }
  }
  size_t bytes() const { return 8 * (n_states + 2 * n_messages); }
};

// Instances in parts of about the same cost: at most 64, and none so small that the overhead per part matters.
std::vector<size_t> parts_of(const std::vector<Pattern>& patterns, double cost, double least_cost) {
  const double wanted = std::max(cost / 64, least_cost);
  std::vector<size_t> ends{0};
  double spent = 0;
  size_t number = 0;
  for (const Pattern& pattern : patterns) {
    for (size_t k = 0; k < pattern.n_instances; k++) {
      number++;
      spent += pattern.cost;
      if (spent >= wanted) ends.push_back(number), spent = 0;
    }
  }
  if (ends.back() < number) ends.push_back(number);
  return ends;
}

// Calls visit(pattern, instance, its number among all) for a range of numbers.
template <class Visit>
void each_instance(const std::vector<Pattern>& patterns, const std::vector<size_t>& firsts, size_t from, size_t to,
                   Visit visit) {
  size_t place = static_cast<size_t>(std::upper_bound(firsts.begin(), firsts.end(), from) - firsts.begin()) - 1;
  for (size_t number = from; number < to; number++) {
    while (number >= firsts[place + 1]) place++;
    visit(patterns[place], number - firsts[place], number);
  }
}

}  // namespace

double PartlyKnown::expect(const double* tables, const double* logs, double* counts, size_t threads) const {
  if (n_instances_ == 0) return 0.0;
  struct Counting {
    Worker worker;
    std::vector<double> shared;
  };
  const Room room(patterns_);
  const auto ends = parts_of(patterns_, cost_, std::max(1e5, 16 * static_cast<double>(n_shared_)));
  const size_t n_parts = ends.size() - 1;
  size_t used = choose_threads(threads, n_parts, cost_);
  used = limit_threads(used, room.bytes() + 8 * n_shared_);
  double value = 0;
  run_parts(
      n_parts, used, 1,
      [&] { return Counting{Worker(tables, logs, room.n_states, room.n_messages, room.n_axes), Vector(n_shared_)}; },
      [&](Counting& mine, size_t part, Order& order) {
        double sum = 0;
        std::fill(mine.shared.begin(), mine.shared.end(), 0.0);
        each_instance(patterns_, firsts_, ends[part], ends[part + 1], [&](const Pattern& pattern, size_t k, size_t) {
          const int64_t* bases = pattern.bases.data() + k * pattern.factors.size();
          const double log_share = mine.worker.solve(pattern, bases, true), weight = pattern.weights[k];
          sum += weight * log_share;
          if (log_share > -INFINITY) mine.worker.count(pattern, bases, weight, mine.shared.data(), counts);
        });
        return order.in_turn(0, part, [&] {
          value += sum;
          for (size_t k = 0; k < n_shared_; k++) counts[k] += mine.shared[k];
        });
      },
      [](Counting&) {});
  return value;
}

void PartlyKnown::answer(const double* tables, const double* logs, double* log_likelihood,
                         const std::vector<double*>& room_of, size_t threads) const {
  std::vector<size_t> starts(n_instances_ + 1, 0);  // the occurrences of every instance, and their rows
  std::vector<uint32_t> rows(occurrences_.size());
  for (const Occurrence& one : occurrences_) starts[firsts_[one.pattern] + one.instance + 1]++;
  for (size_t k = 0; k < n_instances_; k++) starts[k + 1] += starts[k];
  std::vector<size_t> next(starts.begin(), starts.end() - 1);
  for (const Occurrence& one : occurrences_) rows[next[firsts_[one.pattern] + one.instance]++] = one.row;
  const Room room(patterns_);
  size_t widest = 1;
  for (const uint32_t size : sizes_) widest = std::max<size_t>(widest, size);
  const auto ends = parts_of(patterns_, cost_, 1e5);
  std::vector<double> values(n_instances_);
  const size_t n_parts = ends.size() - 1;
  const size_t used = limit_threads(choose_threads(threads, n_parts, cost_), room.bytes());
  struct Answering {
    Worker worker;
    std::vector<double> line;
  };
  run_parts(
      n_parts, used, 1,
      [&] { return Answering{Worker(tables, logs, room.n_states, room.n_messages, room.n_axes), Vector(widest)}; },
      [&](Answering& mine, size_t part, Order&) {
        each_instance(patterns_, firsts_, ends[part], ends[part + 1], [&](const Pattern& pattern, size_t k, size_t n) {
          const int64_t* bases = pattern.bases.data() + k * pattern.factors.size();
          bool wanted = false;
          for (const NodeUse& node : pattern.nodes) wanted |= room_of[node.variable] != nullptr;
          values[n] = mine.worker.solve(pattern, bases, wanted);
          for (const NodeUse& node : pattern.nodes) {
            double* target = room_of[node.variable];
            if (!target) continue;
            const size_t size = sizes_[node.variable];
            std::fill(mine.line.begin(), mine.line.begin() + static_cast<ptrdiff_t>(size), 0.0);
            mine.worker.marginal(pattern, node, mine.line.data());
            for (size_t k = starts[n]; k < starts[n + 1]; k++) {
              std::copy(mine.line.begin(), mine.line.begin() + static_cast<ptrdiff_t>(size), target + rows[k] * size);
            }
          }
        });
        return true;
      },
      [](Answering&) {});
  for (const Occurrence& one : occurrences_) log_likelihood[one.row] += values[firsts_[one.pattern] + one.instance];
}

}  // namespace tallybayes
