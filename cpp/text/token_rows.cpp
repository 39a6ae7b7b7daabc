// Conversion of rows of text to CSR counts, or scores.
#include "text/count_tokens.h"

namespace tallybayes {

namespace {

constexpr size_t batch = 128;  // words whose memory locations are prefetched at once

double worth(const Texts& texts) { return texts.n_rows ? static_cast<double>(texts.n_bytes) : 0.0; }

}  // namespace

size_t NumberedTokens::read(size_t row) {
  const Texts& texts = input_.texts;
  if (!texts.there(row)) return 0;
  tokens_.read(texts.text(row), texts.length(row));
  const size_t n = tokens_.size();
  uint32_t* out = numbers_.at_least(n);
  if (!input_.bits) return find_words(words_ ? words_->table : *input_.known, row);
  const Span* spans = tokens_.spans();
  const uint8_t* text = tokens_.text();
  for (size_t k = 0; k < n; k++) out[k] = bucket_of(text + spans[k].start, spans[k].length, input_.bits);
  return n;
}

// The number of a word plus one, which is new, long or a hash collision.
uint32_t NumberedTokens::settle(const WordTable& table, const WordKey& key, Span span, uint64_t first) {
  const uint8_t* at = tokens_.text() + span.start;
  if (!words_) return table.find(key, at, span.length);
  const uint32_t number = words_->table.add(key, at, span.length);
  if (number > words_->firsts.size()) words_->firsts.push_back(first);
  return number;
}

// Many words are looked up at once, in steps, to overlap the latency of memory.
size_t NumberedTokens::find_words(const WordTable& table, size_t row) {
  const Span* spans = tokens_.spans();
  const uint8_t* text = tokens_.text();
  uint32_t* out = numbers_.data();
  size_t found = 0;
  WordKey keys[batch];
  uint32_t guesses[batch];
  for (size_t first = 0; first < tokens_.size(); first += batch) {
    const size_t many = std::min(batch, tokens_.size() - first);
    const Span* some = spans + first;
    if (words_) words_->table.make_room(many);
    for (size_t k = 0; k < many; k++) {
      keys[k] = key_of(text + some[k].start, some[k].length);
      table.prefetch(keys[k]);
    }
    for (size_t k = 0; k < many; k++) guesses[k] = table.guess(keys[k]);
    for (size_t k = 0; k < many; k++) {
      const uint32_t sure = table.surely(guesses[k], keys[k]);
      const uint32_t number = sure ? guesses[k] : settle(table, keys[k], some[k], uint64_t{row} << 32 | (first + k));
      out[found] = number - 1;
      found += number != 0;
    }
  }
  return found;
}

namespace {

// The rows of one part.
struct RowPart {
  std::vector<int32_t> indices, counts;
  std::vector<uint32_t> lengths;
  size_t worker = 0;
};

struct RowWorker {
  size_t number;
  NumberedTokens tokens;
  RowCounts row_counts;
};

void count_row(NumberedTokens& tokens, size_t row, RowCounts& row_counts, RowPart& out) {
  const size_t n = tokens.read(row), before = out.indices.size();
  row_counts.begin(n);
  out.indices.resize(before + n);
  out.counts.resize(before + n, 0);
  const uint32_t* numbers = tokens.numbers();
  int32_t *indices = out.indices.data() + before, *counts = out.counts.data() + before;
  uint32_t next = 0;
  for (size_t k = 0; k < n; k++) {
    const uint32_t place = row_counts.place(numbers[k], next);
    indices[place] = static_cast<int32_t>(numbers[k]);
    counts[place]++;
    next += place == next;
  }
  out.indices.resize(before + next);
  out.counts.resize(before + next);
  out.lengths.push_back(next);
}

}  // namespace

void count_rows(const TextInput& input, TextRowSums& out) {
  const Texts& texts = input.texts;
  const bool numbering = !input.bits && !input.known;
  const Grid grid = text_grid(texts.n_rows);
  const size_t threads = choose_threads(input.threads, grid.n_parts, worth(texts));
  std::vector<RowPart> parts(grid.n_parts);
  std::vector<NewWords> words(numbering ? threads : 0);
  std::atomic<size_t> n_workers{0};
  auto make = [&] {
    const size_t number = n_workers++;
    return RowWorker{number, NumberedTokens(input, numbering ? &words[number] : nullptr), RowCounts()};
  };
  auto process = [&](RowWorker& worker, size_t number, Order&) {
    parts[number].worker = worker.number;
    for (size_t row = grid.first(number); row < grid.last(number); row++) {
      count_row(worker.tokens, row, worker.row_counts, parts[number]);
    }
    return true;
  };
  run_parts(grid.n_parts, threads, 1, make, process, [](RowWorker&) {});
  if (numbering) out.words = unite_words(words);

  out.indptr.assign(texts.n_rows + 1, 0);
  for (size_t part = 0, row = 0; part < grid.n_parts; part++) {
    for (const uint32_t length : parts[part].lengths) {
      out.indptr[row + 1] = out.indptr[row] + length;
      row++;
    }
  }
  out.indices.resize(static_cast<size_t>(out.indptr.back()));
  out.counts.resize(out.indices.size());
  auto copy = [&](char&, size_t number, Order&) {
    RowPart& part = parts[number];
    const size_t start = static_cast<size_t>(out.indptr[grid.first(number)]);
    std::copy(part.counts.begin(), part.counts.end(), out.counts.begin() + static_cast<ptrdiff_t>(start));
    for (size_t k = 0; k < part.indices.size(); k++) {
      const int32_t index = part.indices[k];
      out.indices[start + k] =
          numbering ? static_cast<int32_t>(out.words.numbers[part.worker][static_cast<size_t>(index)]) : index;
    }
    part = RowPart();
    return true;
  };
  run_parts(grid.n_parts, threads, 1, [] { return char{0}; }, copy, [](char&) {});
}

namespace {

struct ScoreWorker {
  NumberedTokens tokens;
  RowCounts row_counts;
};

template <size_t fixed>
void add_terms(const uint32_t* numbers, size_t n, const double* terms, size_t width, double* out) {
  const size_t w = fixed ? fixed : width;
  double sums[fixed ? fixed : 1] = {};
  double* to = fixed ? sums : out;
  constexpr size_t ahead = 16;
  for (size_t k = 0; k < n; k++) {
    if (k + ahead < n) __builtin_prefetch(terms + numbers[k + ahead] * w);
    const double* from = terms + numbers[k] * w;
    for (size_t j = 0; j < w; j++) to[j] += from[j];
  }
  if (fixed) std::copy(sums, sums + w, out);
}

}  // namespace

void score_rows(const TextInput& input, const double* terms, size_t width, bool presence, double* out) {
  const Texts& texts = input.texts;
  const Grid grid = text_grid(texts.n_rows);
  const size_t threads = choose_threads(input.threads, grid.n_parts, worth(texts));
  auto process = [&](ScoreWorker& worker, size_t part, Order&) {
    for (size_t row = grid.first(part); row < grid.last(part); row++) {
      size_t n = worker.tokens.read(row);
      uint32_t* numbers = worker.tokens.numbers();
      if (presence) {
        worker.row_counts.begin(n);
        uint32_t kept = 0;
        for (size_t k = 0; k < n; k++) {
          numbers[kept] = numbers[k];
          kept += worker.row_counts.place(numbers[k], kept) == kept;
        }
        n = kept;
      }
      double* to = out + row * width;
      if (width == 1) {
        add_terms<1>(numbers, n, terms, width, to);
      } else if (width == 2) {
        add_terms<2>(numbers, n, terms, width, to);
      } else {
        add_terms<0>(numbers, n, terms, width, to);
      }
    }
    return true;
  };
  auto make = [&] { return ScoreWorker{NumberedTokens(input, nullptr), RowCounts()}; };
  run_parts(grid.n_parts, threads, 1, make, process, [](ScoreWorker&) {});
}

}  // namespace tallybayes
