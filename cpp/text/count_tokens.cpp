// Counts of the tokens of the texts in every group, in one pass.
#include "text/count_tokens.h"

namespace tallybayes {

UnitedWords unite_words(std::vector<NewWords>& words) {
  UnitedWords out;
  out.numbers.resize(words.size());
  if (words.empty()) return out;
  // All words in the first table, from any thread.
  WordTable& all = words[0].table;
  const size_t n_first = all.size();
  for (size_t t = 1; t < words.size(); t++) {
    const WordTable& other = words[t].table;
    constexpr size_t batch = 64;
    WordKey keys[batch];
    uint8_t rooms[batch][16];
    std::string_view bytes[batch];
    out.numbers[t].resize(other.size());
    for (size_t first = 0; first < other.size(); first += batch) {
      const size_t many = std::min(batch, other.size() - first);
      all.make_room(many);
      for (size_t k = 0; k < many; k++) {
        bytes[k] = other.word(first + k, rooms[k]);
        keys[k] = key_of(reinterpret_cast<const uint8_t*>(bytes[k].data()), bytes[k].size());
        all.prefetch(keys[k]);
      }
      for (size_t k = 0; k < many; k++) all.guess(keys[k]);
      for (size_t k = 0; k < many; k++) {
        const auto* at = reinterpret_cast<const uint8_t*>(bytes[k].data());
        out.numbers[t][first + k] = all.add(keys[k], at, bytes[k].size()) - 1;
      }
    }
  }
  out.numbers[0].resize(n_first);
  for (size_t k = 0; k < n_first; k++) out.numbers[0][k] = static_cast<uint32_t>(k);

  // Every thread numbers its words by first occurrence; the first occurrence over all threads determines the final
  // order.
  std::vector<uint32_t> turn(all.size(), UINT32_MAX);
  std::vector<size_t> next(words.size(), 0);
  out.offsets.reserve(all.size() + 1);
  out.offsets.push_back(0);
  out.data.reserve(8 * all.size());
  for (;;) {
    size_t best = words.size();
    uint64_t earliest = UINT64_MAX;
    for (size_t t = 0; t < words.size(); t++) {
      if (next[t] == words[t].firsts.size() || words[t].firsts[next[t]] >= earliest) continue;
      earliest = words[t].firsts[next[t]];
      best = t;
    }
    if (best == words.size()) break;
    const uint32_t number = out.numbers[best][next[best]];
    if (turn[number] == UINT32_MAX) {
      turn[number] = static_cast<uint32_t>(out.offsets.size() - 1);
      uint8_t room[16];
      const std::string_view word = all.word(number, room);
      out.data.insert(out.data.end(), word.begin(), word.end());
      out.offsets.push_back(static_cast<int64_t>(out.data.size()));
    }
    out.numbers[best][next[best]++] = turn[number];
  }
  return out;
}

namespace {

double log_factorial(size_t n) {
  return n < n_log_factorials ? log_factorial_table[n] : log_gamma_plus_one(static_cast<double>(n));
}

// Counts of one thread: for every word or bucket the last row that contained it, its count in that row, and the counts
// of the groups.
class GroupCounts {
 public:
  GroupCounts(size_t n_groups, size_t n_buckets) : width_(n_groups + 2), cells_(n_buckets * width_) {}

  // Adds a text to its group. Returns Σ log x! over its words. (A separate function, so that the loop has the
  // registers.)
  __attribute__((noinline)) double add(const uint32_t* numbers, size_t n, size_t n_words, size_t row, size_t group,
                                       bool presence) {
    if (n_words * width_ > cells_.size()) grow(n_words);
    constexpr size_t ahead = 16;
    const uint32_t mark = static_cast<uint32_t>(row + 1), once = presence;
    const size_t width = width_;
    const double* const logs = log_factorial_table;
    uint32_t* const cells = cells_.data();
    double inner = 0.0;
    for (size_t k = 0; k < std::min(ahead, n); k++) __builtin_prefetch(cells + numbers[k] * width, 1);
    for (size_t k = 0; k < n; k++) {
      if (k + ahead < n) __builtin_prefetch(cells + numbers[k + ahead] * width, 1);
      uint32_t* cell = cells + numbers[k] * width;
      // Whether the row contained it before is unpredictable, so there is no branch; the log of 1 is exactly 0.
      const uint32_t again = cell[0] == mark, times = (cell[1] & (0 - again)) + 1;
      cell[0] = mark;
      cell[1] = times;
      cell[2 + group] += 1 ^ (again & once);
      inner += times < n_log_factorials ? logs[times] - logs[times - 1] : natural_log(static_cast<double>(times));
    }
    return inner;
  }
  // Adds the counts to totals, through a table of numbers if given.
  void add_to(double* total, size_t width, const std::vector<uint32_t>* numbers) const {
    const size_t n = numbers ? numbers->size() : cells_.size() / width_;
    for (size_t k = 0; k < n; k++) {
      const uint32_t* cell = cells_.data() + k * width_ + 2;
      double* to = total + (numbers ? (*numbers)[k] : k);
      for (size_t g = 0; g + 2 < width_; g++) to[g * width] += cell[g];
    }
  }

 private:
  void grow(size_t n_words) {
    Zeros<uint32_t> larger(2 * n_words * width_);
    std::copy(cells_.begin(), cells_.end(), larger.begin());
    cells_.swap(larger);
  }

  size_t width_;
  Zeros<uint32_t> cells_;
};

struct Worker {
  size_t number;
  NumberedTokens tokens;
};

}  // namespace

void count_groups_of_text(const TextInput& input, const Groups& groups, bool presence, TextGroupSums& out) {
  const Texts& texts = input.texts;
  const size_t n_groups = groups.n_groups, n_buckets = input.bits ? size_t{1} << input.bits : 0;
  const Grid grid = text_grid(texts.n_rows);
  size_t threads = choose_threads(input.threads, grid.n_parts, static_cast<double>(texts.n_bytes));
  threads = limit_threads(threads, n_buckets * 4 * (n_groups + 2));
  std::vector<NewWords> words(input.bits ? 0 : threads);
  std::vector<GroupCounts> counts;
  for (size_t t = 0; t < threads; t++) counts.emplace_back(n_groups, n_buckets);
  Vector log_bases(grid.n_parts * n_groups, 0.0), rows(grid.n_parts * n_groups, 0.0);
  const uint64_t limit = groups.given() ? code_limit(groups.codes.type, n_groups) : 1;
  std::atomic<size_t> n_workers{0};
  auto make = [&] {
    const size_t number = n_workers++;
    return Worker{number, NumberedTokens(input, input.bits ? nullptr : &words[number])};
  };
  auto process = [&](Worker& worker, size_t part, Order&) {
    for (size_t row = grid.first(part); row < grid.last(part); row++) {
      const uint64_t group = groups.given() ? code_at(groups.codes, row) : 0;
      if (!texts.there(row) || group >= limit) continue;
      const size_t n = worker.tokens.read(row), n_words = input.bits ? 0 : words[worker.number].table.size();
      const double inner = counts[worker.number].add(worker.tokens.numbers(), n, n_words, row, group, presence);
      rows[part * n_groups + group] += 1.0;
      if (!presence) log_bases[part * n_groups + group] += log_factorial(n) - inner;
    }
    return true;
  };
  run_parts(grid.n_parts, threads, 1, make, process, [](Worker&) {});

  out.weight.assign(n_groups, 0.0);
  out.log_base.assign(n_groups, 0.0);
  for (size_t k = 0; k < rows.size(); k++) {
    out.weight[k % n_groups] += rows[k];
    out.log_base[k % n_groups] += log_bases[k];
  }
  if (!input.bits) out.words = unite_words(words);
  const size_t width = input.bits ? n_buckets : out.words.offsets.size() - 1;
  out.total.assign(n_groups * width, 0.0);
  for (size_t t = 0; t < threads; t++) {
    counts[t].add_to(out.total.data(), width, input.bits ? nullptr : &out.words.numbers[t]);
  }
}

}  // namespace tallybayes
