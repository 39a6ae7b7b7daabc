// Counts the tokens of the texts of every group, in one pass.
#include "text_count.h"

namespace tallybayes {

UnitedWords unite_words(std::vector<WordTable>& tables, const std::vector<std::vector<uint64_t>>& firsts) {
  UnitedWords out;
  out.numbers.resize(tables.size());
  if (tables.empty()) return out;
  // All words in the first table, wherever they came from.
  WordTable& all = tables[0];
  for (size_t t = 0; t < tables.size(); t++) out.numbers[t].resize(firsts[t].size());
  for (size_t t = 1; t < tables.size(); t++) {
    constexpr size_t batch = 64;
    WordKey keys[batch];
    uint8_t rooms[batch][16];
    std::string_view words[batch];
    for (size_t first = 0; first < firsts[t].size(); first += batch) {
      const size_t many = std::min(batch, firsts[t].size() - first);
      all.make_room(many);
      for (size_t k = 0; k < many; k++) {
        words[k] = tables[t].word(first + k, rooms[k]);
        keys[k] = key_of(reinterpret_cast<const uint8_t*>(words[k].data()), words[k].size());
        all.prefetch(keys[k]);
      }
      for (size_t k = 0; k < many; k++) {
        const auto* at = reinterpret_cast<const uint8_t*>(words[k].data());
        out.numbers[t][first + k] = all.add(keys[k], at, words[k].size()).number - 1;
      }
    }
  }
  for (size_t k = 0; k < firsts[0].size(); k++) out.numbers[0][k] = static_cast<uint32_t>(k);

  // Every thread met its words one after another; who met one first says when it is its turn.
  std::vector<uint32_t> turn(all.size(), UINT32_MAX);
  std::vector<size_t> next(tables.size(), 0);
  out.offsets.reserve(all.size() + 1);
  out.offsets.push_back(0);
  out.data.reserve(8 * all.size());
  for (;;) {
    size_t best = tables.size();
    for (size_t t = 0; t < tables.size(); t++) {
      if (next[t] < firsts[t].size() && (best == tables.size() || firsts[t][next[t]] < firsts[best][next[best]])) best = t;
    }
    if (best == tables.size()) break;
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

constexpr size_t batch = 128;

// What is known of a word or a bucket: the row that had it last, how often, and the counts of every group.
struct Tallied {
  uint32_t row, times;
};

double log_of(uint32_t times) {
  return times < n_log_factorials ? log_factorial_table[times] - log_factorial_table[times - 1]
                                  : natural_log(static_cast<double>(times));
}

struct Worker {
  size_t number;
  Tokens tokens;
};

// The counts of one thread.
struct GroupCounts {
  WordTable table;
  std::vector<uint64_t> firsts;
  std::vector<uint32_t> counts;  // n_groups for every word or bucket
  std::vector<Tallied> last;     // of buckets
};

class Counter {
 public:
  Counter(const TextInput& input, size_t n_groups, bool presence)
      : input_(input), n_groups_(n_groups), presence_(presence) {}

  // Adds a text to its group; the log of its multinomial coefficient.
  double count(Tokens& tokens, size_t row, size_t group, GroupCounts& counts) const {
    tokens.read(input_.texts.text(row), input_.texts.length(row));
    const double inner = input_.bits ? count_buckets(tokens, row, group, counts) : count_words(tokens, row, group, counts);
    if (presence_) return 0.0;
    const size_t n = tokens.size();
    return (n < n_log_factorials ? log_factorial_table[n] : log_gamma_plus_one(static_cast<double>(n))) - inner;
  }

 private:
  double count_words(Tokens& tokens, size_t row, size_t group, GroupCounts& counts) const {
    const Span* spans = tokens.spans();
    const uint8_t* text = tokens.text();
    const uint32_t mark = static_cast<uint32_t>(row + 1);
    WordKey keys[batch];
    double inner = 0.0;
    for (size_t first = 0; first < tokens.size(); first += batch) {
      const size_t many = std::min(batch, tokens.size() - first);
      counts.table.make_room(many);
      for (size_t k = 0; k < many; k++) {
        keys[k] = key_of(text + spans[first + k].start, spans[first + k].length);
        counts.table.prefetch(keys[k]);
      }
      for (size_t k = 0; k < many; k++) {
        const Span span = spans[first + k];
        WordTable::Slot& slot = counts.table.add(keys[k], text + span.start, span.length);
        if (slot.number > counts.firsts.size()) {
          counts.firsts.push_back(uint64_t{row} << 32 | (first + k));
          counts.counts.resize(counts.counts.size() + n_groups_, 0);
        }
        const bool again = slot.row == mark;
        slot.place = again ? slot.place + 1 : 1;
        slot.row = mark;
        if (again) inner += log_of(slot.place);
        counts.counts[(slot.number - 1) * n_groups_ + group] += !(again && presence_);
      }
    }
    return inner;
  }

  double count_buckets(Tokens& tokens, size_t row, size_t group, GroupCounts& counts) const {
    const Span* spans = tokens.spans();
    const uint8_t* text = tokens.text();
    const uint32_t mark = static_cast<uint32_t>(row + 1);
    uint32_t places[batch];
    double inner = 0.0;
    for (size_t first = 0; first < tokens.size(); first += batch) {
      const size_t many = std::min(batch, tokens.size() - first);
      for (size_t k = 0; k < many; k++) {
        places[k] = bucket_of(text + spans[first + k].start, spans[first + k].length, input_.bits);
        __builtin_prefetch(&counts.last[places[k]], 1);
        __builtin_prefetch(&counts.counts[places[k] * n_groups_ + group], 1);
      }
      for (size_t k = 0; k < many; k++) {
        Tallied& last = counts.last[places[k]];
        const bool again = last.row == mark;
        last = {mark, again ? last.times + 1 : 1};
        if (again) inner += log_of(last.times);
        counts.counts[places[k] * n_groups_ + group] += !(again && presence_);
      }
    }
    return inner;
  }

  const TextInput& input_;
  size_t n_groups_;
  bool presence_;
};

}  // namespace

void count_groups_of_text(const TextInput& input, const Groups& groups, bool presence, TextGroupSums& out) {
  const Texts& texts = input.texts;
  const size_t n_groups = groups.n_groups, n_buckets = input.bits ? size_t{1} << input.bits : 0;
  const Grid grid = text_grid(texts.n_rows);
  size_t threads = choose_threads(input.threads, grid.n_parts, static_cast<double>(texts.n_bytes));
  threads = limit_threads(threads, n_buckets * 4 * (n_groups + 2));
  std::vector<GroupCounts> counts(threads);
  std::vector<Vector> log_bases(grid.n_parts);
  std::vector<std::vector<int64_t>> rows(grid.n_parts);
  const uint64_t limit = groups.given() ? code_limit(groups.codes.type, n_groups) : 0;
  const Counter counter(input, n_groups, presence);
  std::atomic<size_t> n_workers{0};
  auto make = [&] {
    Worker worker{n_workers++, Tokens(input.unicode, input.rule)};
    counts[worker.number].counts.resize(n_buckets * n_groups, 0);
    counts[worker.number].last.resize(n_buckets, Tallied{0, 0});
    return worker;
  };
  auto process = [&](Worker& worker, size_t part, Order&) {
    log_bases[part].assign(n_groups, 0.0);
    rows[part].assign(n_groups, 0);
    for (size_t row = grid.first(part); row < grid.last(part); row++) {
      const uint64_t group = groups.given() ? code_at(groups.codes, row) : 0;
      if (!texts.there(row) || (groups.given() && group >= limit)) continue;
      rows[part][group]++;
      log_bases[part][group] += counter.count(worker.tokens, row, group, counts[worker.number]);
    }
    return true;
  };
  run_parts(grid.n_parts, threads, 1, make, process, [](Worker&) {});

  out.weight.assign(n_groups, 0.0);
  out.log_base.assign(n_groups, 0.0);
  for (size_t part = 0; part < grid.n_parts; part++) {
    for (size_t g = 0; g < n_groups; g++) {
      out.weight[g] += static_cast<double>(rows[part][g]);
      out.log_base[g] += log_bases[part][g];
    }
  }
  size_t width = n_buckets;
  if (!input.bits) {
    std::vector<WordTable> tables;
    std::vector<std::vector<uint64_t>> firsts;
    for (GroupCounts& one : counts) {
      tables.push_back(std::move(one.table));
      firsts.push_back(std::move(one.firsts));
    }
    out.words = unite_words(tables, firsts);
    width = out.words.offsets.size() - 1;
  }
  out.total.assign(n_groups * width, 0.0);
  for (size_t t = 0; t < threads; t++) {
    const std::vector<uint32_t>& from = counts[t].counts;
    for (size_t g = 0; g < n_groups; g++) {
      double* to = out.total.data() + g * width;
      for (size_t k = 0; k * n_groups < from.size(); k++) {
        to[input.bits ? k : out.words.numbers[t][k]] += from[k * n_groups + g];
      }
    }
  }
}

}  // namespace tallybayes
