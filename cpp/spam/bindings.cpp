// Python bindings for mails: the tokens of tallybayes/apps/spam, and batches of mails.
#include "spam/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/unordered_set.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "spam/mail_text.h"
#include "text/word_table.h"

namespace nb = nanobind;

namespace tallybayes {

namespace {

nb::object latin(std::string_view text) {
  PyObject* made = PyUnicode_DecodeLatin1(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// Calls a method of str for a character: the interpreter's tables are not part of its stable interface.
nb::object character(Py_UCS4 c) {
  PyObject* made = PyUnicode_FromOrdinal(static_cast<int>(c));
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

bool is(nb::handle text, const char* method) { return nb::cast<bool>(text.attr(method)()); }

// The characters of a str, with a terminating zero.
std::vector<Py_UCS4> characters_in(nb::handle text) {
  const Py_ssize_t n = PyUnicode_GetLength(text.ptr());
  if (n < 0) throw nb::type_error("expected a str");
  std::vector<Py_UCS4> found(static_cast<size_t>(n) + 1);
  if (!PyUnicode_AsUCS4(text.ptr(), found.data(), n + 1, 1)) throw nb::python_error();
  return found;
}

bool stands_in(char c) { return c == MailCharacters::quote || c == MailCharacters::euro; }

size_t stand_ins(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), stands_in));
}

// The reference: a dict of its functions, numbers and words.
class Reference final : public MailReference {
 public:
  explicit Reference(const nb::dict& given)
      : decoded_(given["decoded"]), text_(given["text"]), unquoted_(given["unquoted"]),
        characters_(given["characters"]), checksum_(given["checksum"]) {
    wide = nb::cast<std::vector<std::string>>(given["wide"]);
    skipped = nb::cast<std::unordered_set<std::string>>(given["skipped"]);
    prefix = nb::cast<std::unordered_map<std::string, std::string>>(given["prefix"]);
    simple = nb::cast<std::unordered_map<std::string, std::string>>(given["simple"]);
    in_words = nb::cast<std::unordered_set<std::string>>(given["in_words"]);
    unread = nb::cast<std::unordered_set<std::string>>(given["unread"]);
    const auto number = [&](const char* name) { return nb::cast<size_t>(given[name]); };
    limits = {number("mail_bytes"), number("header_bytes"), number("headers"), number("part_bytes"),
              number("text_bytes"), number("parts"),        number("depth"),   number("tokens"),
              number("links"),      number("letters"),      number("tags"),    number("number")};
    for (Py_UCS4 c = 0; c < 256; c++) {
      using C = MailCharacters;
      const nb::object one = character(c);
      characters_of.flags[c] = static_cast<uint8_t>(
          (is(one, "isspace") ? C::space : 0) | (is(one, "isalnum") ? C::alnum : 0) |
          (is(one, "isalpha") ? C::alpha : 0) | (is(one, "isupper") ? C::upper : 0) |
          (is(one, "islower") ? C::not_upper : 0) | (c >= '0' && c <= '9' ? C::digit : 0));
      characters_of.lower[c] = static_cast<uint8_t>(characters_in(one.attr("lower")())[0]);
    }
  }

  std::string decoded(std::string_view raw, std::string_view encoding) const override {
    const nb::object found = decoded_(nb::bytes(raw.data(), raw.size()), latin(encoding));
    const nb::bytes bytes = nb::cast<nb::bytes>(found);
    return std::string(bytes.c_str(), bytes.size());
  }
  std::string text(std::string_view raw, std::string_view charset) const override {
    if (stand_ins(charset)) throw OddMail();
    return from_python(text_(nb::bytes(raw.data(), raw.size()), latin(charset)));
  }
  std::string unquoted(std::string_view value) const override {
    if (stand_ins(value) || value.find(MailCharacters::sign) != std::string_view::npos) throw OddMail();
    return from_python(unquoted_(latin(value)));
  }
  std::string characters(std::string_view text) const override {
    return from_python(characters_(latin(text)), stand_ins(text));
  }
  uint32_t checksum(std::string_view raw) const override {
    return nb::cast<uint32_t>(checksum_(nb::bytes(raw.data(), raw.size())));
  }

 private:
  // Text in which every character is a byte, or a sign with a stand-in; other text is odd, as is text with those bytes
  // itself. `expected`: number of stand-ins already there.
  // those bytes of its own. `expected`: so many stand in already.
  std::string from_python(nb::handle text, size_t expected = 0) const {
    const std::vector<Py_UCS4> from = characters_in(text);
    std::string found(from.size() - 1, ' ');
    for (size_t k = 0; k < found.size(); k++) {
      const Py_UCS4 c = from[k];
      if (c < 256) {
        found[k] = static_cast<char>(c);
        expected -= stands_in(found[k]);
      } else if (c == 0x2019 || c == 0x20AC) {
        found[k] = c == 0x2019 ? MailCharacters::quote : MailCharacters::euro;
      } else if (is_sign(c)) {
        found[k] = MailCharacters::sign;
      } else {
        throw OddMail();
      }
    }
    if (expected) throw OddMail();
    return found;
  }
  // Neither part of a word nor a separator; computed once per character.
  bool is_sign(Py_UCS4 c) const {
    if (c >= 0xD800 && c < 0xE000) return false;
    const auto known = signs_.find(c);
    if (known != signs_.end()) return known->second;
    const nb::object one = character(c);
    return signs_[c] = !is(one, "isalnum") && !is(one, "isspace") && one.attr("lower")().equal(one);
  }

  mutable std::unordered_map<Py_UCS4, bool> signs_;
  nb::object decoded_, text_, unquoted_, characters_, checksum_;
};

// Some mails: the distinct tokens of all of them in order of first occurrence, and the tokens of each mail.
class MailBatch {
 public:
  explicit MailBatch(const nb::dict& reference) : reference_(reference), tokens_(reference_) {}

  // False if the mail must be processed in Python; nothing is added then.
  bool add(const nb::bytes& raw) {
    try {
      tokens_.read({raw.c_str(), raw.size()});
    } catch (const OddMail&) {
      return false;
    }
    begin();
    for (size_t k = 0; k < tokens_.size() && length_ < reference_.limits.tokens; k++) add(tokens_.token(k));
    lengths_.push_back(length_);
    return true;
  }

  // A mail as tokens from Python.
  void add_tokens(const nb::list& tokens) {
    begin();
    std::string room;
    for (const nb::handle token : tokens) {
      Py_ssize_t size = 0;
      const char* bytes = PyUnicode_AsUTF8AndSize(token.ptr(), &size);
      if (!bytes) throw nb::python_error();
      room.assign(bytes, static_cast<size_t>(size));
      room.append(16, '\0');
      add(std::string_view(room).substr(0, static_cast<size_t>(size)));
    }
    lengths_.push_back(length_);
  }

  // In UTF-8, each with a terminating zero byte; known words are written as in every database.
  nb::bytes words() const {
    std::string found;
    uint8_t room[16];
    for (size_t k = 0; k < table_.size(); k++) {
      for (const char c : table_.word(k, room)) {
        if (c) {
          found += c;
        } else {
          found += "\xEF\xBF\xBD";
        }
      }
      found += '\0';
    }
    return nb::bytes(found.data(), found.size());
  }
  nb::bytes tokens() const { return nb::bytes(numbers_.data(), numbers_.size() * sizeof(int32_t)); }
  nb::bytes lengths() const { return nb::bytes(lengths_.data(), lengths_.size() * sizeof(int64_t)); }

 private:
  void begin() {
    length_ = 0;
    mail_++;
  }
  void add(std::string_view token) {
    const auto* at = reinterpret_cast<const uint8_t*>(token.data());
    table_.make_room(1);
    const uint32_t number = table_.add(key_of(at, token.size()), at, token.size()) - 1;
    if (number >= INT32_MAX) throw nb::value_error("expected fewer than 2147483647 words");
    if (number == last_.size()) last_.push_back(0);
    if (last_[number] == mail_) return;
    last_[number] = mail_;
    numbers_.push_back(static_cast<int32_t>(number));
    length_++;
  }

  Reference reference_;
  MailTokens tokens_;
  WordTable table_;
  std::vector<uint32_t> last_;  // by word: the last mail that contained it
  std::vector<int32_t> numbers_;
  std::vector<int64_t> lengths_;
  uint32_t mail_ = 0;
  size_t length_ = 0;
};

}  // namespace

void define_mail(nb::module_& module) {
  nb::class_<MailBatch>(module, "MailBatch")
      .def(nb::init<const nb::dict&>(), nb::arg("reference"))
      .def("add", nb::overload_cast<const nb::bytes&>(&MailBatch::add), nb::arg("raw"))
      .def("add_tokens", &MailBatch::add_tokens, nb::arg("tokens"))
      .def("words", &MailBatch::words)
      .def("tokens", &MailBatch::tokens)
      .def("lengths", &MailBatch::lengths);
}

}  // namespace tallybayes
