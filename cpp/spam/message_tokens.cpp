// Tokens of headers, texts, links and style, as in tallybayes/apps/spam.
#include <algorithm>

#include "spam/mail_text.h"

namespace tallybayes {

namespace {

constexpr size_t nowhere = std::string_view::npos;

size_t bit_length(size_t n) {
  size_t found = 0;
  for (; n; n >>= 1) found++;
  return found;
}

}  // namespace

// ---- Words ------------------------------------------------------------------------------------------------------

// Everything but letters and digits separates words, apostrophes are removed, and dots may occur within names. Of
// other characters than ASCII only blanks separate words here; signs are removed at the end of a word.
MailTokens::MailTokens(const MailReference& reference) : reference_(reference), is_(reference.characters_of) {
  for (int c = 0; c < 256; c++) {
    const bool inside = c < 128 ? is_.flags[c] & MailCharacters::alnum : !(is_.flags[c] & MailCharacters::space);
    of_words_[c] = of_names_[c] = inside ? within : between;
  }
  for (const char c : {'\'', MailCharacters::quote}) {
    of_words_[static_cast<uint8_t>(c)] = of_names_[static_cast<uint8_t>(c)] = left_out;
  }
  of_names_[int{'.'}] = within;
}

// The words of a text in order, in `letters_` and `words_`; or its names.
void MailTokens::split(std::string_view text, bool names) {
  const uint8_t* what = names ? of_names_ : of_words_;
  letters_.resize(text.size());
  words_.clear();
  size_t start = 0, end = 0;
  uint8_t all = 0;
  for (const char c : text) {
    const uint8_t kind = what[static_cast<uint8_t>(c)];
    letters_[end] = c;  // is overwritten unless it belongs to a word
    if (kind == within) {
      end++;
      all |= static_cast<uint8_t>(c);
    } else if (kind == between && end > start) {
      end_word(start, end, names, all < 128);
      start = end;
      all = 0;
    }
  }
  if (end > start) end_word(start, end, names, all < 128);
}

// The letters from start to end are a word, or several separated by signs.
void MailTokens::end_word(size_t start, size_t end, bool names, bool ascii) {
  if (names) {
    while (end > start && letters_[end - 1] == '.') end--;
    while (start < end && letters_[start] == '.') start++;
  }
  if (ascii) {
    if (end > start) keep_word(start, end - start, true);
    return;
  }
  const auto letter = [&](size_t at) { return is_.is(letters_[at], MailCharacters::alnum); };
  while (start < end) {
    if (!letter(start)) {
      start++;
      continue;
    }
    size_t stop = start, last = start;
    for (; stop < end && (letter(stop) || letters_[stop] == '.'); stop++) {
      if (letter(stop)) last = stop;
    }
    keep_word(start, last + 1 - start, false);
    start = last + 1;
  }
}

void MailTokens::keep_word(size_t start, size_t length, bool ascii) {
  length = std::min(length, reference_.limits.letters);
  uint8_t any = 0, every = 0xFF;
  bool dotted = false;
  for (size_t k = start; k < start + length; k++) {
    const uint8_t flags = is_.flags[static_cast<uint8_t>(letters_[k])];
    any |= flags;
    every &= flags;
    dotted |= letters_[k] == '.';
  }
  const bool upper = (any & MailCharacters::upper) && !(any & MailCharacters::not_upper) && length > 2;
  words_.push_back({start, length, ascii, (every & MailCharacters::alpha) != 0, upper,
                    (any & MailCharacters::digit) != 0, dotted});
}

// ---- Tokens -----------------------------------------------------------------------------------------------------

void MailTokens::emit(std::string_view prefix, std::string_view word, bool lower) {
  const size_t start = bytes_.size();
  bytes_.resize(start + prefix.size() + 2 * word.size());
  char* to = std::copy(prefix.begin(), prefix.end(), bytes_.data() + start);
  for (const char c : word) {
    const char written = lower ? is_.lowered(c) : c;
    const auto code = static_cast<uint8_t>(written);
    if (code < 128) {
      *to++ = written;
      continue;
    }
    if (c == MailCharacters::sign || c == MailCharacters::quote || c == MailCharacters::euro) throw OddMail();
    *to++ = static_cast<char>(0xC0 | code >> 6);
    *to++ = static_cast<char>(0x80 | (code & 0x3F));
  }
  bytes_.resize(static_cast<size_t>(to - bytes_.data()));
  ends_.push_back(bytes_.size());
}

void MailTokens::style_tokens(std::string_view prefix, std::string_view text) {
  const auto number = [&](char sign) { return static_cast<size_t>(std::count(text.begin(), text.end(), sign)); };
  const size_t length = text.size() + 1;
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  const size_t capitals = static_cast<size_t>(std::count_if(text.begin(), text.end(), is_capital));
  emit(prefix, "size " + std::to_string(bit_length(length)));
  emit(prefix, "capitals " + std::to_string(16 * capitals / length));
  emit(prefix, "! " + std::to_string(bit_length(number('!'))));
  emit(prefix, "$ " + std::to_string(bit_length(number('$') + number('\xA3') + number(MailCharacters::euro))));
}

void MailTokens::header_tokens(const Headers& headers) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : headers) {
    if (reference_.skipped.count(name)) continue;
    emit("style:", name);
    std::string_view text = value;
    if (name == "received") text = text.substr(0, text.find(';'));
    const auto known = reference_.prefix.find(name);
    const std::string prefix = known == reference_.prefix.end() ? "header" : known->second;
    const auto same = [&](const auto& pair) { return pair.first == prefix; };
    const auto place = std::find_if(values.begin(), values.end(), same);
    if (place == values.end()) {
      values.emplace_back(prefix, text);
    } else {
      place->second += ' ';
      place->second += text;
    }
  }
  for (const auto& [prefix, text] : values) {
    const std::string start = prefix + ":";
    if (prefix == "subject") {
      split(text, false);
      for (const Word& word : words_) {
        if (word.upper) emit(start, letters(word));
      }
      style_tokens("style:subject ", text);
      for (const Word& word : words_) emit(start, letters(word), true);
      continue;
    }
    split(lowered(text), true);
    const bool numbered = prefix == "received" || prefix == "header";
    for (const Word& word : words_) {
      if (!numbered || word.alpha || word.dotted || word.length < reference_.limits.number) emit(start, letters(word));
    }
  }
}

void MailTokens::text_tokens(std::string_view text, std::string_view kind) {
  if (text.empty()) return;
  const auto blank = [&](char c) { return is_.is(c, MailCharacters::space); };
  const std::string_view begin = text.substr(0, 200);
  const auto first = std::find_if_not(begin.begin(), begin.end(), blank);
  const std::string opening = lowered(begin.substr(static_cast<size_t>(first - begin.begin()), 5));
  MailPage page;
  if (kind == "text/html" || opening == "<html" || opening == "<!doc") {
    page = read_page(text);
    for (const std::string& tag : page.tags) emit("style:<", tag.substr(0, reference_.limits.letters) + ">");
    link_tokens("link:", page.links);
    link_tokens("image:", page.sources);
    split(lowered(page.hidden), false);
    for (const Word& word : words_) emit("hidden:", letters(word));
    text = page.visible;
  }
  Addresses addresses;
  for (size_t at = text.find("://"); at != nowhere; at = text.find("://", at)) {
    const size_t start = at + 3;
    size_t end = start;
    while (end < text.size() && end < start + 1000 && text[end] != '"' && text[end] != '\'' && text[end] != '<' &&
           text[end] != '>' && !blank(text[end])) {
      end++;
    }
    if (end > start) addresses.emplace_back(text.substr(start, end - start));
    at = end > start ? end : at + 1;
  }
  link_tokens("link:", addresses);
  split(text, false);
  for (const Word& word : words_) emit("", letters(word), true);
  for (const Word& word : words_) {
    if (word.upper) emit("upper:", letters(word));
  }
  for (const Word& word : words_) {
    if (!word.digits) continue;
    std::string shape(letters(word));
    for (char& c : shape) c = c >= '1' && c <= '9' ? '0' : c;
    emit("shape:", shape);
  }
  style_tokens("style:", text);
}

void MailTokens::link_tokens(std::string_view kind, const Addresses& addresses) {
  if (addresses.empty()) return;
  std::string paths;
  std::vector<std::string> hosts;
  const size_t n = std::min(addresses.size(), reference_.limits.links);
  for (size_t k = 0; k < n; k++) {
    std::string_view address = addresses[k];
    const size_t scheme = address.rfind("://");
    if (scheme != nowhere) address = address.substr(scheme + 3);
    const size_t slash = address.find('/');
    hosts.push_back(lowered(address.substr(0, slash).substr(0, 200)));
    if (slash != nowhere) paths += address.substr(slash + 1);
    paths += ' ';
  }
  split(lowered(paths), true);
  for (const Word& word : words_) emit(kind, letters(word));
  for (const std::string& all : hosts) {
    std::string_view host = all;
    do {
      emit(kind, host.substr(0, reference_.limits.letters));
      const size_t dot = host.find('.');
      host = dot == nowhere ? std::string_view() : host.substr(dot + 1);
    } while (!host.empty());
  }
}

}  // namespace tallybayes
