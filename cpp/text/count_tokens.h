// Rows of text, counted and scored.
#pragma once

#include "core/parallel.h"
#include "core/driver_types.h"
#include "text/word_table.h"

namespace tallybayes {

// Strings in Arrow's layout.
struct Texts {
  Column offsets;
  const uint8_t* data = nullptr;
  size_t n_bytes = 0;
  const uint8_t* valid = nullptr;
  size_t skipped = 0, n_rows = 0;

  int64_t offset(size_t row) const {
    if (offsets.type == Type::int32) return reinterpret_cast<const int32_t*>(offsets.data)[row];
    return reinterpret_cast<const int64_t*>(offsets.data)[row];
  }
  bool there(size_t row) const {
    return !valid || (valid[(row + skipped) / 8] >> ((row + skipped) % 8) & 1);
  }
  const uint8_t* text(size_t row) const { return data + offset(row); }
  size_t length(size_t row) const { return static_cast<size_t>(offset(row + 1) - offset(row)); }
};

// How tokens are numbered: by a table of words, by buckets with this many bits, or by first occurrence.
struct TextInput {
  const Unicode& unicode;
  TokenRule rule;
  Texts texts;
  unsigned bits;            // 0: no buckets
  const WordTable* known;   // nullptr: no table
  size_t threads;
};

// Parts of a fixed number of rows, for any number of threads.
inline Grid text_grid(size_t n_rows) { return Grid(n_rows, std::clamp<size_t>(n_rows / 128, 1, 1024)); }

// Words numbered by several threads, renumbered by first occurrence over all threads.
struct UnitedWords {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets;
  std::vector<std::vector<uint32_t>> numbers;  // by thread and number within the thread
};

// The numbers of a row and their counts, in order of first occurrence.
class RowCounts {
 public:
  void begin(size_t most) {
    size_t size = slots_.size();
    while (size < 2 * most) size = std::max<size_t>(64, 2 * size);
    if (size != slots_.size() || ++mark_ == 0) {
      slots_.assign(size, Slot{0, 0, 0});
      mark_ = 1;
    }
  }
  // The position of a number in its row; `next` if it is new.
  uint32_t place(uint32_t number, uint32_t next) {
    const size_t last = slots_.size() - 1;
    for (size_t at = (number * (word_seeds[0] | 1)) >> 20 & last;; at = (at + 1) & last) {
      Slot& slot = slots_[at];
      if (slot.mark != mark_) {
        slot = {number, mark_, next};
        return next;
      }
      if (slot.number == number) return slot.place;
    }
  }

 private:
  struct Slot {
    uint32_t number, mark, place;
  };
  std::vector<Slot> slots_;
  uint32_t mark_ = 0;
};

// The words of a thread, and the position of the first occurrence of each.
struct NewWords {
  WordTable table;
  std::vector<uint64_t> firsts;
};

// The numbers of the tokens of a text that have one. `words` if they are numbered by first occurrence, otherwise
// nullptr.
class NumberedTokens {
 public:
  NumberedTokens(const TextInput& input, NewWords* words)
      : input_(input), words_(words), tokens_(input.unicode, input.rule) {}
  uint32_t* numbers() const { return numbers_.data(); }
  size_t read(size_t row);

 private:
  size_t find_words(const WordTable& table, size_t row);
  __attribute__((noinline)) uint32_t settle(const WordTable& table, const WordKey& key, Span span, uint64_t first);

  const TextInput& input_;
  NewWords* words_;
  Tokens tokens_;
  Room<uint32_t> numbers_;
};

UnitedWords unite_words(std::vector<NewWords>& words);

struct TextRowSums {
  std::vector<int64_t> indptr;
  std::vector<int32_t> indices, counts;
  UnitedWords words;
};
void count_rows(const TextInput& input, TextRowSums& out);

struct TextGroupSums {
  Vector weight, total, log_base;
  UnitedWords words;
};
void count_groups_of_text(const TextInput& input, const Groups& groups, bool presence, TextGroupSums& out);

void score_rows(const TextInput& input, const double* terms, size_t width, bool presence, double* out);

}  // namespace tallybayes
