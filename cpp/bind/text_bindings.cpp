// Python bindings for text, with the signatures of tallybayes/kernels/reference/text_counts.py.
#include "bind/text_bindings.h"

#include <nanobind/stl/string.h>

#include "bind/arrays.h"
#include "core/parallel.h"
#include "text/count_tokens.h"

namespace tallybayes {

namespace {

template <class To, class From>
std::vector<To> copied(nb::handle array, Type type) {
  const Borrowed borrowed(array);
  const Borrowed& good = borrowed.require({type});
  const auto* from = reinterpret_cast<const From*>(good.data());
  return std::vector<To>(from, from + good.length(0));
}

// The Unicode table of the Python package, read at first use.
const Unicode& unicode() {
  static const Unicode* table = nullptr;
  if (!table) {
    const nb::object python = nb::module_::import_("tallybayes.kernels.text.unicode_properties").attr("unicode")();
    auto made = std::make_unique<Unicode>();
    made->block_of = copied<uint8_t, uint8_t>(python.attr("block_of"), Type::uint8);
    made->blocks = copied<uint8_t, uint8_t>(python.attr("blocks").attr("ravel")(), Type::uint8);
    made->properties = copied<int32_t, int32_t>(python.attr("properties"), Type::int32);
    made->lower = copied<int32_t, int32_t>(python.attr("lower"), Type::int32);
    const auto pairs = copied<uint32_t, uint32_t>(python.attr("pairs").attr("ravel")(), Type::uint32);
    const size_t n = pairs.size() / 3;
    for (size_t k = 0; k < n; k++) made->pairs.push_back(uint64_t{pairs[k]} << 32 | pairs[n + k]);
    made->wholes.assign(pairs.begin() + static_cast<ptrdiff_t>(2 * n), pairs.end());
    table = made.release();
  }
  return *table;
}

TokenRule rule_of(nb::handle rule) {
  const nb::tuple ngram_range = nb::cast<nb::tuple>(rule.attr("ngram_range"));
  TokenRule found;
  found.own = nb::cast<std::string>(rule.attr("name")) == "words";
  found.lowercase = nb::cast<bool>(rule.attr("lowercase"));
  found.characters = nb::cast<bool>(rule.attr("characters"));
  found.low = nb::cast<size_t>(ngram_range[0]);
  found.high = nb::cast<size_t>(ngram_range[1]);
  if (found.low < 1) throw nb::value_error("expected at least one token");
  return found;
}

// Strings with their buffers; all offsets are checked.
struct BorrowedTexts {
  std::vector<Borrowed> buffers;
  Texts texts;

  BorrowedTexts(nb::handle offsets, nb::handle data, nb::handle valid, size_t skipped) {
    buffers.reserve(3);
    buffers.emplace_back(offsets).require({Type::int32, Type::int64});
    buffers.emplace_back(data).require({Type::uint8});
    const size_t n_offsets = buffers[0].length(0);
    if (n_offsets < 1 || n_offsets > size_t{1} << 31) throw nb::value_error("expected 1 to 2**31 offsets");
    texts.offsets = buffers[0].column();
    texts.data = reinterpret_cast<const uint8_t*>(buffers[1].data());
    texts.n_bytes = buffers[1].n_bytes();
    texts.n_rows = n_offsets - 1;
    texts.skipped = skipped;
    if (!valid.is_none()) {
      buffers.emplace_back(valid).require({Type::uint8});
      if (buffers[2].length(0) * 8 < texts.n_rows + skipped) throw nb::value_error("expected a bit for every row");
      texts.valid = reinterpret_cast<const uint8_t*>(buffers[2].data());
    }
    size_t used = 0;
    for (size_t row = 0; row < texts.n_rows; row++) {
      if (!texts.there(row)) continue;
      const int64_t start = texts.offset(row), stop = texts.offset(row + 1);
      if (start < 0 || stop < start || static_cast<uint64_t>(stop) > texts.n_bytes) {
        throw nb::index_error("an offset leads out of the bytes");
      }
      if (texts.length(row) > Tokens::most_bytes) {
        const std::string found = std::to_string(texts.length(row)), most = std::to_string(Tokens::most_bytes);
        const std::string which = "the text of row " + std::to_string(row);
        throw nb::value_error((which + " has " + found + " bytes, expected at most " + most).c_str());
      }
      used += texts.length(row);
    }
    texts.n_bytes = used;  // of these rows: a slice of a column refers to the bytes of the whole column
  }
};

// Words by number, with a hash table of their bytes.
class Vocabulary {
 public:
  Vocabulary(nb::handle data, nb::handle offsets) {
    const BorrowedTexts words(offsets, data, nb::none(), 0);
    const nb::gil_scoped_release released;
    each(words.texts, [&](size_t row, const WordKey& key, const uint8_t* at, size_t length) {
      table_.make_room(1);
      if (table_.add(key, at, length) == row + 1) return;
      const std::string word = "word " + std::to_string(row);
      const std::string text = word + " of the vocabulary occurred before, expected every word once";
      throw nb::value_error(text.c_str());
    });
  }

  nb::object positions(nb::handle data, nb::handle offsets) const {
    const BorrowedTexts words(offsets, data, nb::none(), 0);
    std::vector<int64_t> found(words.texts.n_rows);
    {
      const nb::gil_scoped_release released;
      each(words.texts, [&](size_t row, const WordKey& key, const uint8_t* at, size_t length) {
        found[row] = int64_t{table_.find(key, at, length)} - 1;
      });
    }
    const size_t n = found.size();
    return to_array(std::move(found), {n});
  }

  const WordTable& table() const { return table_; }

 private:
  // Calls f with the key of every word, after its position in the table was prefetched.
  template <class F>
  void each(const Texts& texts, F f) const {
    constexpr size_t batch = 64;
    WordKey keys[batch];
    for (size_t first = 0; first < texts.n_rows; first += batch) {
      const size_t many = std::min(batch, texts.n_rows - first);
      for (size_t k = 0; k < many; k++) {
        const size_t length = texts.length(first + k);
        if (length < 16) {  // sixteen bytes are read
          uint8_t room[16] = {};
          std::copy_n(texts.text(first + k), length, room);
          keys[k] = key_of(room, length);
        } else {
          keys[k] = key_of(texts.text(first + k), length);
        }
        table_.prefetch(keys[k]);
      }
      for (size_t k = 0; k < many; k++) f(first + k, keys[k], texts.text(first + k), texts.length(first + k));
    }
  }

  WordTable table_;
};

TextInput input_of(const BorrowedTexts& borrowed, nb::handle rule, unsigned bits, nb::handle vocabulary,
                   size_t threads) {
  if (bits > 30) throw nb::value_error("expected at most 30 bits");
  const WordTable* known = vocabulary.is_none() ? nullptr : &nb::cast<const Vocabulary&>(vocabulary).table();
  return {unicode(), rule_of(rule), borrowed.texts, bits, known, threads};
}

nb::list python_token_strings(nb::bytes text, nb::handle rule) {
  if (text.size() > Tokens::most_bytes) throw nb::value_error("expected a text of at most 2**29 bytes");
  Tokens tokens(unicode(), rule_of(rule));
  tokens.read(reinterpret_cast<const uint8_t*>(text.c_str()), text.size());
  nb::list found;
  for (size_t k = 0; k < tokens.size(); k++) {
    const Span span = tokens.spans()[k];
    found.append(nb::str(reinterpret_cast<const char*>(tokens.text() + span.start), span.length));
  }
  return found;
}

nb::object python_buckets(nb::handle data, nb::handle offsets, unsigned bits) {
  const BorrowedTexts words(offsets, data, nb::none(), 0);
  if (bits < 1 || bits > 30) throw nb::value_error("expected 1 to 30 bits");
  std::vector<int64_t> found(words.texts.n_rows);
  std::vector<uint8_t> room;
  for (size_t row = 0; row < found.size(); row++) {
    const size_t length = words.texts.length(row);
    room.assign(length + 8, 0);  // eight bytes are read at a time
    std::copy_n(words.texts.text(row), length, room.begin());
    found[row] = bucket_of(room.data(), length, bits);
  }
  const size_t n = found.size();
  return to_array(std::move(found), {n});
}

nb::tuple words_of(UnitedWords&& words, bool numbered) {
  if (!numbered) return nb::make_tuple(nb::none(), nb::none());
  if (words.offsets.empty()) words.offsets.push_back(0);
  const size_t n_bytes = words.data.size(), n = words.offsets.size();
  return nb::make_tuple(to_array(std::move(words.data), {n_bytes}), to_array(std::move(words.offsets), {n}));
}

nb::tuple python_text_rows(nb::handle offsets, nb::handle data, nb::handle valid, size_t skipped, nb::handle rule,
                           unsigned bits, nb::handle vocabulary, size_t threads) {
  const BorrowedTexts borrowed(offsets, data, valid, skipped);
  const TextInput input = input_of(borrowed, rule, bits, vocabulary, threads);
  TextRowSums sums;
  {
    const nb::gil_scoped_release released;
    count_rows(input, sums);
  }
  const nb::tuple words = words_of(std::move(sums.words), !bits && !input.known);
  const size_t n = sums.indptr.size(), n_entries = sums.indices.size();
  return nb::make_tuple(to_array(std::move(sums.indptr), {n}), to_array(std::move(sums.indices), {n_entries}),
                        to_array(std::move(sums.counts), {n_entries}), words[0], words[1]);
}

void check_codes(const Groups& groups, size_t n_rows) {
  if (!groups.given()) return;
  const uint64_t limit = code_limit(groups.codes.type, groups.n_groups), missing = missing_code(groups.codes.type);
  for (size_t row = 0; row < n_rows; row++) {
    const uint64_t code = code_at(groups.codes, row);
    if (code < limit || code == missing) continue;
    const bool negative = is_signed(groups.codes.type) && code > missing / 2;
    const std::string found = negative ? "-" + std::to_string(missing - code + 1) : std::to_string(code);
    const std::string text = "row " + std::to_string(row) + " has group code " + found + ", expected 0 to " +
                             std::to_string(static_cast<int64_t>(groups.n_groups) - 1) + ", or -1 to skip the row";
    throw nb::index_error(text.c_str());
  }
}

nb::tuple python_count_texts(nb::handle offsets, nb::handle data, nb::handle valid, size_t skipped, nb::handle rule,
                             unsigned bits, nb::handle group, size_t n_groups, bool presence, size_t threads) {
  const BorrowedTexts borrowed(offsets, data, valid, skipped);
  const TextInput input = input_of(borrowed, rule, bits, nb::none(), threads);
  const BorrowedRows rows = borrow_rows(group, n_groups, nb::none());
  check_rows(rows, borrowed.texts.n_rows);
  check_codes(rows.groups, borrowed.texts.n_rows);
  if (borrowed.texts.n_bytes > UINT32_MAX) throw nb::value_error("expected at most 2**32 bytes at a time");
  TextGroupSums sums;
  {
    const nb::gil_scoped_release released;
    count_groups_of_text(input, rows.groups, presence, sums);
  }
  const nb::tuple words = words_of(std::move(sums.words), !bits);
  const size_t width = n_groups ? sums.total.size() / n_groups : 0;
  return nb::make_tuple(words[0], words[1], to_array(std::move(sums.weight), {n_groups}),
                        to_array(std::move(sums.total), {n_groups, width}),
                        to_array(std::move(sums.log_base), {n_groups}));
}

nb::object python_score_texts(nb::handle offsets, nb::handle data, nb::handle valid, size_t skipped, nb::handle rule,
                              unsigned bits, nb::handle vocabulary, nb::handle terms, bool presence, size_t threads) {
  const BorrowedTexts borrowed(offsets, data, valid, skipped);
  const TextInput input = input_of(borrowed, rule, bits, vocabulary, threads);
  const Borrowed table(terms);
  const size_t n_words = bits ? size_t{1} << bits : input.known ? input.known->size() : 0;
  if (table.type() != Type::float64 || table.dimensions() != 2 || table.length(0) != n_words) {
    throw nb::value_error("expected a term for every word");
  }
  const size_t width = table.length(1), n_rows = borrowed.texts.n_rows;
  if (n_words && width && !(table.table().row_major() && table.stride(0) == static_cast<ptrdiff_t>(8 * width))) {
    throw nb::value_error("expected terms side by side");
  }
  Vector out(n_rows * width, 0.0);
  if (n_words) {
    const nb::gil_scoped_release released;
    score_rows(input, reinterpret_cast<const double*>(table.data()), width, presence, out.data());
  }
  return to_array(std::move(out), {n_rows, width});
}

// The concatenated bytes of strings and their offsets; None if an element is not a str or contains a surrogate. The
// GIL is held, so that the list cannot change while other threads copy.
nb::object python_joined_texts(const nb::list& strings, size_t threads) {
  constexpr size_t ahead = 16, at_once = 1024;  // strings that are prefetched; strings per thread and batch
  const size_t n = strings.size();
  const auto item = [&](size_t row) { return PyList_GetItem(strings.ptr(), static_cast<Py_ssize_t>(row)); };
  const nb::object is_ascii = nb::handle(reinterpret_cast<PyObject*>(&PyUnicode_Type)).attr("isascii");
  std::vector<const void*> bytes(n);
  std::vector<int64_t> offsets(n + 1);
  std::vector<nb::object> encoded;
  for (size_t row = 0; row < n; row++) {
    if (row + ahead < n) __builtin_prefetch(item(row + ahead));
    PyObject* one = item(row);
    if (!PyUnicode_CheckExact(one)) return nb::none();
    Py_ssize_t length = 0;
    if (nb::steal(PyObject_Vectorcall(is_ascii.ptr(), &one, 1, nullptr)).is(Py_True)) {  // its bytes need no encoding
      bytes[row] = PyUnicode_AsUTF8AndSize(one, &length);
    } else {  // the encoded bytes are not cached in the string
      PyObject* made = PyUnicode_AsUTF8String(one);
      if (!made) {
        PyErr_Clear();
        return nb::none();
      }
      encoded.push_back(nb::steal(made));
      bytes[row] = PyBytes_AsString(made);
      length = PyBytes_Size(made);
    }
    offsets[row + 1] = offsets[row] + length;
  }
  const size_t n_bytes = static_cast<size_t>(offsets[n]), n_parts = (n + at_once - 1) / at_once;
  auto* data = new Zeros<uint8_t>(n_bytes);
  nb::capsule owner(data, "tallybayes", [](void* p) noexcept { delete static_cast<Zeros<uint8_t>*>(p); });
  std::atomic<size_t> next{0};
  run_threads(choose_threads(threads, n_parts, static_cast<double>(n_bytes) / 16), [&] {
    for (size_t part; (part = next++) < n_parts;) {
      for (size_t row = part * at_once; row < std::min(n, (part + 1) * at_once); row++) {
        const auto length = static_cast<size_t>(offsets[row + 1] - offsets[row]);
        if (length) std::memcpy(data->data() + offsets[row], bytes[row], length);
      }
    }
  });
  const nb::object array = nb::ndarray<nb::numpy, uint8_t>(data->data(), {n_bytes}, owner).cast();
  return nb::make_tuple(to_array(std::move(offsets), {n + 1}), array);
}

}  // namespace

void define_text(nb::module_& module) {
  nb::class_<Vocabulary>(module, "Vocabulary")
      .def(nb::init<nb::handle, nb::handle>(), nb::arg("data"), nb::arg("offsets"))
      .def("positions", &Vocabulary::positions, nb::arg("data"), nb::arg("offsets"));
  module.def("joined_texts", &python_joined_texts, nb::arg("strings"), nb::arg("threads"));
  module.def("token_strings", &python_token_strings, nb::arg("text"), nb::arg("rule"));
  module.def("buckets", &python_buckets, nb::arg("data"), nb::arg("offsets"), nb::arg("hashing"));
  module.def("text_rows", &python_text_rows, nb::arg("offsets"), nb::arg("data"), nb::arg("valid").none(),
             nb::arg("skipped"), nb::arg("rule"), nb::arg("hashing"), nb::arg("vocabulary").none(), nb::arg("threads"));
  module.def("count_texts", &python_count_texts, nb::arg("offsets"), nb::arg("data"), nb::arg("valid").none(),
             nb::arg("skipped"), nb::arg("rule"), nb::arg("hashing"), nb::arg("group").none(), nb::arg("n_groups"),
             nb::arg("presence"), nb::arg("threads"));
  module.def("score_texts", &python_score_texts, nb::arg("offsets"), nb::arg("data"), nb::arg("valid").none(),
             nb::arg("skipped"), nb::arg("rule"), nb::arg("hashing"), nb::arg("vocabulary").none(), nb::arg("terms"),
             nb::arg("presence"), nb::arg("threads"));
}

}  // namespace tallybayes
