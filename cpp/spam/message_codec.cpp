// The words of a mail database: numbered, sorted, and packed by mail, as in tallybayes/apps/spam.
#include <algorithm>

#include "bind/arrays.h"
#include "spam/bindings.h"
#include "text/word_table.h"

namespace tallybayes {

namespace {

nb::object as_text(std::string_view word) {
  PyObject* made = PyUnicode_FromStringAndSize(word.data(), static_cast<Py_ssize_t>(word.size()));
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// Words in order of first occurrence.
class MailWords {
 public:
  size_t size() const { return table_.size(); }

  // The numbers of words, each with a terminating zero byte; new words get the next numbers.
  nb::object places(const nb::bytes& words) {
    std::string bytes(words.c_str(), words.size());
    if (!bytes.empty() && bytes.back() != '\0') throw nb::value_error("expected a zero byte after every word");
    std::vector<int32_t> found;
    const size_t n = bytes.size();
    bytes.append(16, '\0');  // so that sixteen bytes can be read at the start of every word
    for (size_t start = 0; start < n;) {
      const size_t end = bytes.find('\0', start);
      const auto* at = reinterpret_cast<const uint8_t*>(bytes.data()) + start;
      table_.make_room(1);
      found.push_back(static_cast<int32_t>(table_.add(key_of(at, end - start), at, end - start) - 1));
      start = end + 1;
    }
    const size_t size = found.size();
    return to_array(std::move(found), {size});
  }

  // The same numbers in the order of their words' characters, and these words.
  nb::tuple in_order(nb::handle places) const {
    const Borrowed borrowed(places);
    const auto* given = reinterpret_cast<const int32_t*>(borrowed.require({Type::int32}).data());
    std::vector<Entry> entries;
    entries.reserve(borrowed.length(0));
    uint8_t room[16];
    for (size_t k = 0; k < borrowed.length(0); k++) {
      if (given[k] < 0 || static_cast<size_t>(given[k]) >= size()) throw nb::index_error("there is no word of this place");
      const std::string_view word = table_.word(static_cast<size_t>(given[k]), room);
      const auto* at = reinterpret_cast<const uint8_t*>(word.data());  // at least sixteen bytes
      const size_t length = std::min(word.size(), size_t{16});
      const uint64_t second = load_word(at + 8) & (length < 16 ? byte_masks[length].high : ~uint64_t{0});
      entries.push_back({__builtin_bswap64(load_word(at)), __builtin_bswap64(second), given[k]});
    }
    // UTF-8 sorts like its characters, and no word has a zero byte: shorter words come first.
    std::sort(entries.begin(), entries.end(), [&](const Entry& one, const Entry& other) {
      if (one.first != other.first) return one.first < other.first;
      if (one.second != other.second) return one.second < other.second;
      uint8_t left[16], right[16];
      return table_.word(static_cast<size_t>(one.place), left) < table_.word(static_cast<size_t>(other.place), right);
    });
    std::vector<int32_t> sorted;
    sorted.reserve(entries.size());
    nb::list words;
    for (const Entry& entry : entries) {
      words.append(as_text(table_.word(static_cast<size_t>(entry.place), room)));
      sorted.push_back(entry.place);
    }
    const size_t n = sorted.size();
    return nb::make_tuple(to_array(std::move(sorted), {n}), words);
  }

  // The distinct prefixes of words, up to a colon or empty, and the prefix of every word.
  nb::tuple starts() const {
    WordTable starts;
    std::vector<int32_t> found;
    found.reserve(size());
    uint8_t room[16];
    for (size_t k = 0; k < size(); k++) {
      const std::string_view word = table_.word(k, room);
      const auto* at = reinterpret_cast<const uint8_t*>(word.data());  // at least sixteen bytes
      const size_t length = word.find(':') + 1;  // 0 if there is none
      starts.make_room(1);
      found.push_back(static_cast<int32_t>(starts.add(key_of(at, length), at, length) - 1));
    }
    nb::list names;
    for (size_t k = 0; k < starts.size(); k++) names.append(as_text(starts.word(k, room)));
    const size_t n = found.size();
    return nb::make_tuple(names, to_array(std::move(found), {n}));
  }

 private:
  struct Entry {
    uint64_t first, second;  // sixteen bytes of a word, big-endian
    int32_t place;
  };
  WordTable table_;
};

// The sorted distinct ids of the words of every mail, as bytes: differences of successive ids, seven bits per byte;
// and the sorted ids of all words, with the number of mails of each.
nb::tuple pack_words(nb::handle ids, nb::handle tokens, nb::handle lengths) {
  const Borrowed of_words(ids), of_tokens(tokens), of_mails(lengths);
  const auto* id = reinterpret_cast<const int64_t*>(of_words.require({Type::int64}).data());
  const auto* token = reinterpret_cast<const int32_t*>(of_tokens.require({Type::int32}).data());
  const auto* length = reinterpret_cast<const int64_t*>(of_mails.require({Type::int64}).data());
  const size_t n_words = of_words.length(0), n_tokens = of_tokens.length(0), n_mails = of_mails.length(0);
  if (n_mails > UINT32_MAX) throw nb::value_error("expected fewer mails");
  std::vector<size_t> starts(n_words + 1);
  for (size_t k = 0; k < n_tokens; k++) {
    if (token[k] < 0 || static_cast<size_t>(token[k]) >= n_words) throw nb::index_error("there is no word of this number");
    starts[static_cast<size_t>(token[k]) + 1]++;
  }
  for (size_t word = 0; word < n_words; word++) {
    if (id[word] < 0) throw nb::value_error("expected ids of at least 0");
    starts[word + 1] += starts[word];
  }
  std::vector<uint32_t> mails(n_tokens);  // of the first word, of the second, …
  std::vector<size_t> next(starts.begin(), starts.end() - 1);
  size_t at = 0;
  for (size_t mail = 0; mail < n_mails; mail++) {
    if (length[mail] < 0 || static_cast<uint64_t>(length[mail]) > n_tokens - at) {
      throw nb::value_error("expected as many tokens as the mails have");
    }
    for (const size_t end = at + static_cast<size_t>(length[mail]); at < end; at++) {
      mails[next[static_cast<size_t>(token[at])]++] = static_cast<uint32_t>(mail);
    }
  }
  if (at != n_tokens) throw nb::value_error("expected as many tokens as the mails have");
  std::vector<std::pair<int64_t, size_t>> order(n_words);
  for (size_t word = 0; word < n_words; word++) order[word] = {id[word], word};
  std::sort(order.begin(), order.end());
  std::vector<std::string> packed(n_mails);
  for (size_t mail = 0; mail < n_mails; mail++) packed[mail].reserve(static_cast<size_t>(length[mail]) + 16);
  std::vector<int64_t> last(n_mails, -1), used, counts;
  for (const auto& [number, word] : order) {
    int64_t n = 0;
    for (size_t k = starts[word]; k < starts[word + 1]; k++) {
      const uint32_t mail = mails[k];
      if (last[mail] == number) continue;
      auto step = static_cast<uint64_t>(number - std::max<int64_t>(last[mail], 0));
      last[mail] = number;
      n++;
      for (; step >= 0x80; step >>= 7) packed[mail].push_back(static_cast<char>(step | 0x80));
      packed[mail].push_back(static_cast<char>(step));
    }
    if (n == 0) continue;
    if (!used.empty() && used.back() == number) {
      counts.back() += n;
    } else {
      used.push_back(number);
      counts.push_back(n);
    }
  }
  nb::list bytes;
  for (const std::string& one : packed) bytes.append(nb::bytes(one.data(), one.size()));
  const size_t n_used = used.size();
  return nb::make_tuple(bytes, to_array(std::move(used), {n_used}), to_array(std::move(counts), {n_used}));
}

}  // namespace

void define_mail_words(nb::module_& module) {
  nb::class_<MailWords>(module, "MailWords")
      .def(nb::init<>())
      .def("__len__", &MailWords::size)
      .def("places", &MailWords::places, nb::arg("words"))
      .def("in_order", &MailWords::in_order, nb::arg("places"))
      .def("starts", &MailWords::starts);
  module.def("pack_words", &pack_words, nb::arg("ids"), nb::arg("tokens"), nb::arg("lengths"));
}

}  // namespace tallybayes
