// Tokens of mails, as defined by tallybayes/apps/spam: shared declarations. Text is Latin-1 here, one byte per
// character, and three control characters, which do not occur in mails, stand for other signs. Other letters and rare
// constructs are processed in Python, which is the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tallybayes {

// Thrown if a mail must be processed in Python.
struct OddMail {};

// Properties of the characters below 256, from the interpreter's tables.
struct MailCharacters {
  enum : uint8_t { space = 1, alnum = 2, alpha = 4, upper = 8, not_upper = 16, digit = 32 };
  // Stand-ins for the sign U+2019, which is removed from words, for the euro sign, which is counted, and for all other
  // signs, which separate words. A token with one of them is processed in Python.
  static constexpr char sign = '\x80', quote = '\x81', euro = '\x82';
  uint8_t flags[256];
  uint8_t lower[256];

  bool is(char c, uint8_t what) const { return flags[static_cast<uint8_t>(c)] & what; }
  char lowered(char c) const { return static_cast<char>(lower[static_cast<uint8_t>(c)]); }
};

struct MailLimits {
  size_t mail_bytes, header_bytes, headers, part_bytes, text_bytes, parts, depth, tokens, links, letters, tags, number;
};

// Words and numbers of the reference, and its functions.
class MailReference {
 public:
  virtual ~MailReference() = default;
  virtual std::string decoded(std::string_view raw, std::string_view encoding) const = 0;
  virtual std::string text(std::string_view raw, std::string_view charset) const = 0;
  virtual std::string unquoted(std::string_view value) const = 0;
  virtual std::string characters(std::string_view text) const = 0;
  virtual uint32_t checksum(std::string_view raw) const = 0;

  MailCharacters characters_of;
  MailLimits limits;
  std::vector<std::string> wide;  // prefixes of charsets in which ASCII bytes are not ASCII text
  std::unordered_set<std::string> skipped;                 // headers
  std::unordered_map<std::string, std::string> prefix;     // of headers
  std::unordered_map<std::string, std::string> simple;     // tags without attributes, and their names
  std::unordered_set<std::string> in_words, unread;        // names of tags
};

using Addresses = std::vector<std::string>;

struct MailPage {
  std::string visible, hidden;
  Addresses links, sources;
  std::vector<std::string> tags;
};

// The parts of a mail in order.
class MailTokens {
 public:
  explicit MailTokens(const MailReference& reference);

  // All tokens of a mail, with duplicates; throws OddMail if they must be computed in Python.
  void read(std::string_view raw);

  size_t size() const { return ends_.size(); }
  // In UTF-8; sixteen bytes can be read at the start of each.
  std::string_view token(size_t k) const {
    const size_t start = k ? ends_[k - 1] : 0;
    return std::string_view(bytes_).substr(start, ends_[k] - start);
  }

 private:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  struct ContentType {
    std::string kind, boundary, charset;
    bool has_boundary = false, has_charset = false;
  };
  struct Word {
    size_t start, length;
    bool ascii, alpha, upper, digits, dotted;
  };

  // mail_parts.cpp
  void leaves(std::string_view raw, size_t start, size_t end, size_t depth);
  Headers fields(std::string_view head) const;
  ContentType content_type(std::string_view value) const;
  std::string text_of(std::string_view raw, std::string_view charset) const;
  std::string stripped(std::string_view value) const;
  std::string lowered(std::string_view value) const;

  // mail_page.cpp
  MailPage read_page(std::string_view html) const;
  void find_addresses(std::string_view tag, MailPage& page) const;
  bool paints(std::string_view tag) const;
  int hides(std::string_view tag) const;
  size_t blanks(std::string_view text, size_t at) const;
  bool is_white(std::string_view text, size_t at) const;

  // mail_tokens.cpp
  void header_tokens(const Headers& headers);
  void text_tokens(std::string_view text, std::string_view kind);
  void link_tokens(std::string_view kind, const Addresses& addresses);
  void style_tokens(std::string_view prefix, std::string_view text);
  void split(std::string_view text, bool names);
  void end_word(size_t start, size_t end, bool names, bool ascii);
  void keep_word(size_t start, size_t length, bool ascii);
  void emit(std::string_view prefix, std::string_view word, bool lower = false);
  std::string_view letters(const Word& word) const { return std::string_view(letters_).substr(word.start, word.length); }

  enum : uint8_t { between, within, left_out };
  const MailReference& reference_;
  const MailCharacters& is_;
  uint8_t of_words_[256], of_names_[256];  // role of a character in words and names
  size_t parts_left_ = 0, bytes_left_ = 0;
  std::string letters_;      // of the words of the last text
  std::vector<Word> words_;  // of the last text
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace tallybayes
