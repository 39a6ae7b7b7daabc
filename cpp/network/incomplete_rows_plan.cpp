// Components of the missing cells of a row, and their clique trees.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "network/incomplete_rows.h"

namespace tallybayes {

namespace {

constexpr size_t most_states = size_t{1} << 40;  // of a plan; callers reject plans that need more

using Variables = std::vector<uint32_t>;

struct Elimination {
  std::vector<Variables> cliques;  // sorted
  std::vector<int64_t> above;
  std::vector<size_t> home;  // of every variable: the clique that it is eliminated from
};

double n_cells_of(const Variables& clique, const PartlyKnownInput& input) {
  double product = 1;
  for (const uint32_t variable : clique) product *= input.sizes[variable];
  return product;
}

// Eliminates the variables (positions in `variables`, which is in this order) one by one; cliques that are subsets of
// another are merged with it, and every clique comes before its parent.
Elimination eliminate(const Variables& variables, const std::vector<Variables>& scopes) {
  const size_t n = variables.size();
  std::vector<Variables> later(n);  // the neighbors that are eliminated after each
  const auto join = [&](const Variables& some) {
    for (size_t k = 0; k + 1 < some.size(); k++) {
      later[some[k]].insert(later[some[k]].end(), some.begin() + static_cast<ptrdiff_t>(k) + 1, some.end());
    }
  };
  for (const Variables& scope : scopes) join(scope);
  std::vector<Variables> cliques(n);
  std::vector<int64_t> above(n, -1);
  for (size_t k = 0; k < n; k++) {
    Variables& near = later[k];
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
    cliques[k].push_back(static_cast<uint32_t>(k));
    cliques[k].insert(cliques[k].end(), near.begin(), near.end());
    if (!near.empty()) {
      above[k] = near[0];
      Variables& next = later[near[0]];
      next.insert(next.end(), near.begin() + 1, near.end());  // they become neighbors when they are eliminated
    }
  }
  std::vector<size_t> stands(n), number(n);
  for (size_t k = 0; k < n; k++) stands[k] = k;
  Elimination found;
  std::vector<size_t> kept;
  std::vector<int64_t> hangs;
  for (size_t k = 0; k < n; k++) {
    const size_t mine = stands[k];
    const int64_t up = above[k];
    if (up >= 0 && stands[static_cast<size_t>(up)] == static_cast<size_t>(up) &&
        std::includes(cliques[mine].begin(), cliques[mine].end(), cliques[static_cast<size_t>(up)].begin(),
                      cliques[static_cast<size_t>(up)].end())) {
      stands[static_cast<size_t>(up)] = mine;
    } else {
      number[mine] = kept.size();
      kept.push_back(mine);
      hangs.push_back(up);
    }
  }
  for (size_t k = 0; k < kept.size(); k++) {
    found.cliques.push_back(cliques[kept[k]]);
    found.above.push_back(hangs[k] < 0 ? -1 : static_cast<int64_t>(number[stands[static_cast<size_t>(hangs[k])]]));
  }
  for (size_t k = 0; k < n; k++) found.home.push_back(number[stands[k]]);
  return found;
}

}  // namespace

Pattern plan_component(const Variables& given, const Variables& factors, const PartlyKnownInput& input) {
  Variables variables = given;
  std::sort(variables.begin(), variables.end(),
            [&](uint32_t a, uint32_t b) { return input.when[a] < input.when[b]; });
  const auto place_of = [&](uint32_t variable) -> int64_t {
    for (size_t k = 0; k < variables.size(); k++) {
      if (variables[k] == variable) return static_cast<int64_t>(k);
    }
    return -1;
  };
  std::vector<Variables> scopes;  // the missing members of every factor, as positions
  for (const uint32_t factor : factors) {
    Variables& scope = scopes.emplace_back();
    for (const uint32_t member : input.factors[factor].members) {
      if (place_of(member) >= 0) scope.push_back(static_cast<uint32_t>(place_of(member)));
    }
    std::sort(scope.begin(), scope.end());
  }
  Elimination tree = eliminate(variables, scopes);
  const auto named = [&](const Variables& clique) {
    Variables out;
    for (const uint32_t place : clique) out.push_back(variables[place]);
    return out;
  };
  double cells = 0;
  for (const Variables& clique : tree.cliques) cells += n_cells_of(named(clique), input);
  // Messages cost about as much as a few factors; a single table of all variables needs none.
  const double whole = n_cells_of(variables, input), n_factors = static_cast<double>(factors.size());
  const double each = n_factors / static_cast<double>(tree.cliques.size()) + 4;
  if (whole * n_factors <= cells * each + 32.0 * static_cast<double>(tree.cliques.size())) {
    Variables all(variables.size());
    for (size_t k = 0; k < all.size(); k++) all[k] = static_cast<uint32_t>(k);
    tree = {{all}, {-1}, std::vector<size_t>(variables.size(), 0)};
    cells = whole;
  }
  Pattern pattern;
  pattern.cells = cells;
  pattern.cost = 32;
  if (!(cells < static_cast<double>(most_states))) return pattern;
  const auto strides_in = [&](const Variables& clique, const auto& stride_of) {
    std::vector<int64_t> strides;
    for (const uint32_t place : clique) strides.push_back(stride_of(variables[place]));
    return strides;
  };
  for (size_t k = 0; k < tree.cliques.size(); k++) {
    const Variables& members = tree.cliques[k];
    SmallClique clique;
    clique.above = tree.above[k];
    for (const uint32_t place : members) clique.shape.push_back(input.sizes[variables[place]]);
    for (const uint32_t size : clique.shape) clique.n_states *= size;
    clique.first = pattern.n_states;
    pattern.n_states += clique.n_states;
    pattern.cost += 4 * static_cast<double>(clique.n_states);
    if (clique.above >= 0) {
      const Variables& upper = tree.cliques[static_cast<size_t>(clique.above)];
      std::vector<std::pair<uint32_t, int64_t>> strides;
      for (const uint32_t place : members) {
        if (!std::binary_search(upper.begin(), upper.end(), place)) continue;
        strides.emplace_back(variables[place], static_cast<int64_t>(clique.n_message));
        clique.n_message *= input.sizes[variables[place]];
      }
      const auto stride_of = [&](uint32_t variable) {
        for (const auto& [other, stride] : strides) {
          if (other == variable) return stride;
        }
        return int64_t{0};
      };
      clique.to_message = strides_in(members, stride_of);
      clique.above_message = strides_in(upper, stride_of);
      clique.first_message = pattern.n_messages;
      pattern.n_messages += clique.n_message;
    }
    pattern.cliques.push_back(std::move(clique));
  }
  for (size_t k = 0; k < factors.size(); k++) {
    const TableFactor& factor = input.factors[factors[k]];
    const size_t home = tree.home[scopes[k][0]];
    const auto stride_of = [&](uint32_t variable) {
      for (size_t m = 0; m < factor.members.size(); m++) {
        if (factor.members[m] == variable) return factor.strides[m];
      }
      return int64_t{0};
    };
    pattern.cost += 2 * static_cast<double>(pattern.cliques[home].n_states);
    pattern.factors.push_back({home, strides_in(tree.cliques[home], stride_of), factor.by_row});
  }
  for (size_t k = 0; k < variables.size(); k++) {
    const uint32_t mine = variables[k];
    const auto stride_of = [&](uint32_t variable) { return static_cast<int64_t>(variable == mine); };
    pattern.nodes.push_back({mine, tree.home[k], strides_in(tree.cliques[tree.home[k]], stride_of)});
  }
  return pattern;
}

namespace {

struct HashVariables {
  size_t operator()(const Variables& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const uint32_t one : key) hash = (hash ^ one) * 0xff51afd7ed558ccdu, hash ^= hash >> 29;
    return hash;
  }
};

constexpr uint32_t unset = std::numeric_limits<uint32_t>::max();

// The instance with these bases; a new one of weight 0 if there is none.
uint32_t instance_of(Pattern& pattern, const std::vector<int64_t>& bases) {
  const size_t width = bases.size();
  const auto slot_of = [&](const int64_t* some, size_t n_slots) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t k = 0; k < width; k++) {
      hash = (hash ^ static_cast<uint64_t>(some[k])) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return static_cast<size_t>(hash) & (n_slots - 1);
  };
  if (2 * pattern.n_instances >= pattern.slots.size()) {
    std::vector<uint32_t> slots(std::max<size_t>(8, 4 * pattern.n_instances), unset);
    while (slots.size() & (slots.size() - 1)) slots.push_back(unset);  // a power of two
    for (size_t k = 0; k < pattern.n_instances; k++) {
      size_t slot = slot_of(pattern.bases.data() + k * width, slots.size());
      while (slots[slot] != unset) slot = (slot + 1) & (slots.size() - 1);
      slots[slot] = static_cast<uint32_t>(k);
    }
    pattern.slots = std::move(slots);
  }
  const size_t n_slots = pattern.slots.size();
  size_t slot = slot_of(bases.data(), n_slots);
  for (; pattern.slots[slot] != unset; slot = (slot + 1) & (n_slots - 1)) {
    const int64_t* there = pattern.bases.data() + pattern.slots[slot] * width;
    if (std::equal(bases.begin(), bases.end(), there)) return pattern.slots[slot];
  }
  pattern.slots[slot] = static_cast<uint32_t>(pattern.n_instances);
  pattern.bases.insert(pattern.bases.end(), bases.begin(), bases.end());
  pattern.weights.push_back(0.0);
  return static_cast<uint32_t>(pattern.n_instances++);
}

}  // namespace

PartlyKnown::PartlyKnown(PartlyKnownInput input) : sizes_(input.sizes), n_rows_(input.n_rows) {
  for (const TableFactor& factor : input.factors) {
    const size_t cells = static_cast<size_t>(factor.n_cells) * (factor.by_row ? n_rows_ : 1);
    n_cells_ += cells;
    if (!factor.by_row) n_shared_ += cells;
  }
  read(input);
  for (Pattern& pattern : patterns_) {
    firsts_.push_back(n_instances_);
    n_instances_ += pattern.n_instances;
    cost_ += pattern.cost * static_cast<double>(pattern.n_instances);
    most_cells_ = std::max(most_cells_, pattern.cells);
    std::vector<uint32_t>().swap(pattern.slots);
  }
  firsts_.push_back(n_instances_);
}

void PartlyKnown::read(const PartlyKnownInput& input) {
  const size_t d = sizes_.size(), n_factors = input.factors.size();
  std::vector<Variables> having(d);  // the factors of every variable
  std::vector<uint32_t> n_having(d);
  std::vector<uint32_t> own(d, unset);
  for (size_t f = 0; f < n_factors; f++) {
    for (const uint32_t member : input.factors[f].members) having[member].push_back(static_cast<uint32_t>(f));
    if (input.factors[f].sums_to_one >= 0) own[static_cast<size_t>(input.factors[f].sums_to_one)] = static_cast<uint32_t>(f);
  }
  for (size_t j = 0; j < d; j++) n_having[j] = static_cast<uint32_t>(having[j].size());
  std::unordered_map<Variables, uint32_t, HashVariables> known;
  std::vector<uint32_t> left = n_having, group(d);
  std::vector<uint8_t> open(d), gone(n_factors);  // missing variables that are requested; factors that sum to one
  Variables missing, waiting, members, factors, key, dropped;
  std::vector<int64_t> bases;
  for (size_t row = 0; row < n_rows_; row++) {
    const int32_t* codes = input.codes + row * d;
    missing.clear();
    for (size_t j = 0; j < d; j++) {
      if (codes[j] < 0) missing.push_back(static_cast<uint32_t>(j)), open[j] = 1;
    }
    for (const uint32_t start : missing) {  // no other factor depends on it, and its own table sums to one
      waiting.assign(1, start);
      while (!waiting.empty()) {
        const uint32_t j = waiting.back();
        waiting.pop_back();
        if (!open[j] || input.kept[j] || left[j] != 1 || own[j] == unset || gone[own[j]]) continue;
        open[j] = 0;
        gone[own[j]] = 1;
        dropped.push_back(own[j]);
        for (const uint32_t member : input.factors[own[j]].members) left[member]--, waiting.push_back(member);
      }
    }
    for (const uint32_t start : missing) {
      if (!open[start]) continue;
      members.assign(1, start);
      factors.clear();
      open[start] = 0;
      for (size_t k = 0; k < members.size(); k++) {  // members are appended during the loop
        for (const uint32_t f : having[members[k]]) {
          if (gone[f]) continue;
          gone[f] = 1;
          dropped.push_back(f);
          factors.push_back(f);
          for (const uint32_t other : input.factors[f].members) {
            if (codes[other] >= 0 || !open[other]) continue;
            open[other] = 0;
            members.push_back(other);
          }
        }
      }
      std::sort(members.begin(), members.end());
      std::sort(factors.begin(), factors.end());
      key = members;
      key.insert(key.end(), factors.begin(), factors.end());
      key.push_back(static_cast<uint32_t>(members.size()));
      const auto [place, fresh] = known.try_emplace(key, static_cast<uint32_t>(patterns_.size()));
      if (fresh) patterns_.push_back(plan_component(members, factors, input));
      bases.clear();
      for (const uint32_t f : factors) {
        const TableFactor& factor = input.factors[f];
        int64_t base = factor.offset + (factor.by_row ? factor.n_cells * static_cast<int64_t>(row) : 0);
        for (size_t m = 0; m < factor.members.size(); m++) {
          if (codes[factor.members[m]] > 0) base += codes[factor.members[m]] * factor.strides[m];
        }
        bases.push_back(base);
      }
      Pattern& pattern = patterns_[place->second];
      const uint32_t instance = instance_of(pattern, bases);
      pattern.weights[instance] += input.weights ? input.weights[row] : 1.0;
      occurrences_.push_back({static_cast<uint32_t>(row), place->second, instance});
    }
    for (const uint32_t f : dropped) gone[f] = 0;
    dropped.clear();
    for (const uint32_t j : missing) open[j] = 0;
    left = n_having;
  }
}

}  // namespace tallybayes
