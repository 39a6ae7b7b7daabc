// Tokenization character by character.
#include "text/tokenizer.h"

#include <cstring>

namespace tallybayes {

uint32_t Unicode::composed(uint32_t first, uint32_t second) const {
  // Syllables of Hangul are computed.
  if (second >= 0x1161 && second <= 0x1175 && first >= 0x1100 && first <= 0x1112) {
    return 0xAC00 + ((first - 0x1100) * 21 + second - 0x1161) * 28;
  }
  if (second >= 0x11A8 && second <= 0x11C2 && first >= 0xAC00 && first <= 0xD7A3 && (first - 0xAC00) % 28 == 0) {
    return first + second - 0x11A7;
  }
  const uint64_t pair = uint64_t{first} << 32 | second;
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), pair);
  if (found == pairs.end() || *found != pair) return 0;
  return wholes[static_cast<size_t>(found - pairs.begin())];
}

namespace {

// A vowel or a final consonant of Hangul, composed with the previous character.
inline bool is_jamo(uint32_t code) { return code >= 0x1161 && code <= 0x11C2; }

}  // namespace

void Tokens::read(const uint8_t* text, size_t n) {
  n_spans_ = end_ = 0;
  units_.clear();
  if (rule_.characters) {
    out_ = text_.at_least(3 * n + padding);
    read_stretch(text, n);
  } else {
    read_words(text, n);
  }
  found_ = text_.data();
  given_ = spans_.data();
  if (rule_.characters) {
    join_characters();
  } else if (rule_.high > 1) {
    join_words();
  }
}

void Tokens::read_stretch(const uint8_t* text, size_t n) {
  mode_ = Mode::nothing;
  joining_ = blank_ = false;
  last_ = 0;
  bool after_cased = false;
  const bool plain = rule_.own && !rule_.characters;
  for (size_t at = 0; at < n;) {
    uint32_t code = decode(text, n, at);
    size_t record = unicode_.record(code);
    uint8_t properties = static_cast<uint8_t>(unicode_.properties[record]);
    if (rule_.lowercase) {
      const bool before = after_cased;
      if (!(properties & ignorable_bit)) after_cased = properties & cased_bit;
      if (code == 0x3A3) {
        code = before && sigma_ends(text, n, at) ? 0x3C2 : 0x3C3;
      } else if (code == 0x130) {  // the only one that becomes two characters
        put('i', static_cast<uint8_t>(unicode_.properties[unicode_.record('i')]));
        code = 0x307;
        properties = static_cast<uint8_t>(unicode_.properties[unicode_.record(code)]);
      } else {
        code = static_cast<uint32_t>(static_cast<int32_t>(code) + unicode_.lower[record]);
      }
    }
    if (plain && mode_ == Mode::word && !joining_ && (properties & class_bits) == letter && !is_jamo(code)) {
      write(code);  // as `put_own` does for most
      last_kind_ = letter;
    } else {
      put(code, properties);
    }
  }
  finish();
}

// No cased letter follows, ignoring case-ignorable characters.
bool Tokens::sigma_ends(const uint8_t* text, size_t n, size_t at) const {
  while (at < n) {
    const int32_t properties = unicode_.properties[unicode_.record(decode(text, n, at))];
    if (!(properties & ignorable_bit)) return !(properties & cased_bit);
  }
  return true;
}

void Tokens::put(uint32_t code, uint8_t properties) {
  const uint8_t kind = properties & class_bits;
  if (rule_.own && kind == ignored) return;
  if (rule_.characters) return put_character(code, properties);
  if (rule_.own) return put_own(code, kind);
  if (properties & word_bit) {
    if (mode_ == Mode::nothing) {
      mode_ = Mode::word;
      start_ = end_;
      n_letters_ = 0;
    }
    n_letters_++;
    write(code);
  } else {
    finish();
  }
}

// Whether the character was composed with the previous one.
bool Tokens::compose(uint32_t code, uint8_t kind) {
  if (!last_ || (kind != mark && !is_jamo(code))) return false;
  const uint32_t whole = unicode_.composed(last_, code);
  if (!whole) return false;
  end_ = last_at_;
  write(whole);
  return true;
}

void Tokens::put_own(uint32_t code, uint8_t kind) {
  if (joining_) {
    joining_ = false;
    if (kind != letter) {
      end_ = joint_;
      finish();
    }
  } else if (compose(code, kind)) {
    return;
  }
  switch (kind) {
    case letter:
    case digit:
      if (mode_ != Mode::word) {
        finish();
        mode_ = Mode::word;
        start_ = end_;
      }
      break;
    case mark:
      if (mode_ == Mode::nothing) return;
      break;
    case lone:
      if (mode_ != Mode::run) {
        finish();
        mode_ = Mode::run;
        units_.clear();
      }
      units_.push_back(static_cast<uint32_t>(end_));
      break;
    case picture:
      finish();
      write(code);
      emit(last_at_, end_);
      last_ = 0;
      return;
    case joiner:
      if (mode_ == Mode::word && (last_kind_ == letter || last_kind_ == mark)) {
        joint_ = end_;
        joining_ = true;
        write(code == 0x2019 ? '\'' : code);
        last_ = 0;
        return;
      }
      return finish();
    default: return finish();
  }
  write(code);
  last_kind_ = kind;
}

void Tokens::put_character(uint32_t code, uint8_t properties) {
  if (properties & space_bit) {
    if (blank_) {  // two or more are a blank, whichever they are
      out_[end_ = last_at_] = ' ';
      last_ = ' ';
      end_++;
      return;
    }
    if (rule_.own) code = ' ';
  } else if (rule_.own && compose(code, properties & class_bits)) {
    return;
  }
  blank_ = properties & space_bit;
  units_.push_back(static_cast<uint32_t>(end_));
  write(code);
}

// Ends what was begun.
void Tokens::finish() {
  if (joining_) end_ = joint_;
  joining_ = false;
  last_ = 0;
  if (mode_ == Mode::word) {
    if (rule_.own || n_letters_ > 1) emit(start_, end_);
  } else if (mode_ == Mode::run) {
    const size_t n = units_.size();
    if (n == 1) emit(units_[0], end_);
    for (size_t k = 0; k + 1 < n; k++) emit(units_[k], k + 2 < n ? units_[k + 2] : end_);
  }
  mode_ = Mode::nothing;
}

// N-grams of adjacent words, joined by a blank: slices of all words joined by blanks.
void Tokens::join_words() {
  const size_t n = n_spans_;
  size_t n_bytes = n;
  for (size_t k = 0; k < n; k++) n_bytes += given_[k].length;
  uint8_t* to = joined_.at_least(n_bytes + padding);
  units_.resize(n + 1);
  size_t end = 0;
  for (size_t k = 0; k < n; k++) {
    units_[k] = static_cast<uint32_t>(end);
    std::memcpy(to + end, found_ + given_[k].start, given_[k].length);
    end += given_[k].length;
    to[end++] = ' ';
  }
  units_[n] = static_cast<uint32_t>(end);
  size_t n_grams = 0;
  for (size_t many = rule_.low; many <= std::min(rule_.high, n); many++) n_grams += n - many + 1;
  Span* grams = grams_.at_least(n_grams);
  n_spans_ = 0;
  for (size_t many = rule_.low; many <= std::min(rule_.high, n); many++) {
    for (size_t k = 0; k + many <= n; k++) grams[n_spans_++] = {units_[k], units_[k + many] - 1 - units_[k]};
  }
  found_ = to;
  given_ = grams;
}

void Tokens::join_characters() {
  const size_t n = units_.size();
  units_.push_back(static_cast<uint32_t>(end_));
  size_t n_grams = 0;
  for (size_t many = rule_.low; many <= std::min(rule_.high, n); many++) n_grams += n - many + 1;
  Span* grams = grams_.at_least(n_grams);
  n_spans_ = 0;
  for (size_t many = rule_.low; many <= std::min(rule_.high, n); many++) {
    for (size_t k = 0; k + many <= n; k++) grams[n_spans_++] = {units_[k], units_[k + many] - units_[k]};
  }
  given_ = grams;
}

}  // namespace tallybayes
