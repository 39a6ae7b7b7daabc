// Tokenization. The rules are documented in tallybayes/kernels/text/tokenizer.py.
#pragma once

#include <algorithm>
#include <memory>

#include "text/unicode_properties.h"

namespace tallybayes {

struct TokenRule {
  bool own;  // "words", otherwise "sklearn"
  bool lowercase, characters;
  size_t low, high;
};

struct Span {
  uint32_t start, length;
};

// Uninitialized memory. Its contents are lost when it grows.
template <class T>
class Room {
 public:
  T* at_least(size_t n) {
    if (n > n_) {
      n_ = std::max(n, 2 * n_);
      storage_.reset(new T[n_]);
    }
    return storage_.get();
  }
  T* data() const { return storage_.get(); }

 private:
  std::unique_ptr<T[]> storage_;
  size_t n_ = 0;
};

// The tokens of one text after another; one object per thread.
class Tokens {
 public:
  static constexpr size_t padding = 16;  // bytes that may be read after a token
  static constexpr size_t most_bytes = size_t{1} << 29;  // of a text

  Tokens(const Unicode& unicode, const TokenRule& rule) : unicode_(unicode), rule_(rule) {}

  void read(const uint8_t* text, size_t n);
  const uint8_t* text() const { return found_; }
  const Span* spans() const { return given_; }
  size_t size() const { return n_spans_; }

 private:
  enum class Mode : uint8_t { nothing, word, run };

  struct Stretch {
    size_t start, stop;
  };

  void read_words(const uint8_t* text, size_t n);
  size_t find_stretches(const uint8_t* text, size_t n, uint64_t* words, const uint64_t* others);
  size_t flatten(const uint64_t* words, size_t n, Room<Span>& room);
  void read_stretch(const uint8_t* text, size_t n);
  bool sigma_ends(const uint8_t* text, size_t n, size_t at) const;
  void put(uint32_t code, uint8_t properties);
  void put_own(uint32_t code, uint8_t kind);
  void put_character(uint32_t code, uint8_t properties);
  void write(uint32_t code) {
    last_at_ = end_;
    last_ = code;
    end_ = static_cast<size_t>(encode(code, out_ + end_) - out_);
  }
  bool compose(uint32_t code, uint8_t kind);
  void finish();
  void emit(size_t start, size_t stop) {
    spans_.data()[n_spans_++] = {static_cast<uint32_t>(start), static_cast<uint32_t>(stop - start)};
  }
  void join_words();
  void join_characters();

  const Unicode& unicode_;
  TokenRule rule_;
  Room<uint8_t> text_, joined_;
  Room<Span> spans_, plain_, grams_;
  Room<uint64_t> masks_;
  std::vector<Stretch> stretches_;
  const uint8_t* found_ = nullptr;
  const Span* given_ = nullptr;
  size_t n_spans_ = 0;

  // State of the parser.
  uint8_t* out_ = nullptr;
  size_t end_ = 0, start_ = 0, last_at_ = 0, n_letters_ = 0;
  size_t joint_ = 0;  // position of a joiner that needs a following letter
  bool joining_ = false;
  uint32_t last_ = 0;  // the previous character, if it can still change
  uint8_t last_kind_ = 0;
  bool blank_ = false;  // the last character is white space
  Mode mode_ = Mode::nothing;
  std::vector<uint32_t> units_;  // starts of the letters of a run, or of characters
};

}  // namespace tallybayes
