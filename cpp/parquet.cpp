// The pages of a column in a Parquet file. Files come from strangers: every length is checked before it is used, and what
// is not understood is left to others.
#include "parquet.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tallybayes {

namespace {

constexpr size_t largest_page = size_t{1} << 26;
enum Page { data_page = 0, index_page = 1, dictionary_page = 2, data_page_2 = 3 };
enum Encoding { plain = 0, plain_dictionary = 2, run_lengths = 3, dictionary_codes = 8 };

struct Span {
  const uint8_t* at;
  const uint8_t* end;
  size_t size() const { return static_cast<size_t>(end - at); }
};

bool read_varint(Span& span, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (span.at == span.end) return false;
    const uint8_t byte = *span.at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

bool read_word(Span& span, uint32_t& word) {
  if (span.size() < 4) return false;
  word = span.at[0] | span.at[1] << 8 | span.at[2] << 16 | static_cast<uint32_t>(span.at[3]) << 24;
  span.at += 4;
  return true;
}

// ---- What stands before a page, in Thrift's compact protocol -------------------------------------------------------------

struct Header {
  int64_t type = -1, size = -1, packed_size = -1;
  int64_t n_values = -1, encoding = -1, level_encoding = run_lengths;
  int64_t n_nulls = 0, level_bytes = 0, repeated_bytes = 0;  // of the second kind of pages
  bool packed = true;
};

bool skip_value(Span& span, unsigned type, int depth);

bool skip_struct(Span& span, int depth) {
  while (span.at < span.end) {
    const uint8_t head = *span.at++;
    if (head == 0) return true;
    uint64_t id;
    if (!(head >> 4) && !read_varint(span, id)) return false;
    if ((head & 15) > 2 && !skip_value(span, head & 15, depth)) return false;  // 1 and 2 are true and false
  }
  return false;
}

bool skip_value(Span& span, unsigned type, int depth) {
  uint64_t n;
  if (depth > 8) return false;
  switch (type) {
    case 1: case 2: case 3:  // in a list, a byte each
      if (span.at == span.end) return false;
      span.at++;
      return true;
    case 4: case 5: case 6: return read_varint(span, n);
    case 7:
      if (span.size() < 8) return false;
      span.at += 8;
      return true;
    case 8:
      if (!read_varint(span, n) || n > span.size()) return false;
      span.at += n;
      return true;
    case 9: case 10: {
      if (span.at == span.end) return false;
      const uint8_t head = *span.at++;
      n = head >> 4;
      if (n == 15 && !read_varint(span, n)) return false;
      if (n > span.size()) return false;  // every element takes a byte at least
      for (; n; n--) {
        if (!skip_value(span, head & 15, depth + 1)) return false;
      }
      return true;
    }
    case 12: return skip_struct(span, depth + 1);
    default: return false;
  }
}

// Calls `take(id, type)` for every field; it reads the field's value and says true, or says false and it is skipped.
template <class Take>
bool read_struct(Span& span, const Take& take) {
  int64_t id = 0;
  while (span.at < span.end) {
    const uint8_t head = *span.at++;
    if (head == 0) return true;
    uint64_t word;
    if (head >> 4) {
      id += head >> 4;
    } else {
      if (!read_varint(span, word)) return false;
      id = static_cast<int64_t>(word >> 1) ^ -static_cast<int64_t>(word & 1);
    }
    const unsigned type = head & 15;
    if (!take(id, type) && type > 2 && !skip_value(span, type, 0)) return false;
  }
  return false;
}

bool read_header(Span& span, Header& header) {
  bool good = true;
  const auto number = [&](unsigned type, int64_t& value) {
    uint64_t word;
    good = good && type >= 4 && type <= 6 && read_varint(span, word);
    if (good) value = static_cast<int64_t>(word >> 1) ^ -static_cast<int64_t>(word & 1);
    return true;
  };
  const auto inner = [&](int64_t page) {
    return [&, page](int64_t id, unsigned type) {
      if (!good) return true;
      if (page == data_page_2) {
        switch (id) {
          case 1: return number(type, header.n_values);
          case 2: return number(type, header.n_nulls);
          case 4: return number(type, header.encoding);
          case 5: return number(type, header.level_bytes);
          case 6: return number(type, header.repeated_bytes);
          case 7: header.packed = type == 1; return false;
          default: return false;
        }
      }
      if (id == 1) return number(type, header.n_values);
      if (id == 2) return number(type, header.encoding);
      if (id == 3 && page == data_page) return number(type, header.level_encoding);
      return false;
    };
  };
  const bool whole = read_struct(span, [&](int64_t id, unsigned type) {
    if (!good) return true;
    if (id == 1) return number(type, header.type);
    if (id == 2) return number(type, header.size);
    if (id == 3) return number(type, header.packed_size);
    if ((id == 5 || id == 7 || id == 8) && type == 12) {
      good = read_struct(span, inner(id == 5 ? data_page : id == 7 ? dictionary_page : data_page_2));
      return true;
    }
    return false;
  });
  return whole && good && header.size >= 0 && header.packed_size >= 0 && header.n_values >= 0 &&
         static_cast<uint64_t>(header.size) <= largest_page;
}

// ---- Codes in runs, or packed by their bits ------------------------------------------------------------------------------

// Calls `run(value, n)` and `packed(bytes, n)` until n values have been seen; packed ones come in eights, but for the last.
template <class Run, class Packed>
bool read_hybrid(Span span, unsigned width, size_t n, const Run& run, const Packed& packed) {
  while (n) {
    uint64_t head;
    if (!read_varint(span, head)) return false;
    if (head & 1) {
      const uint64_t eights = head >> 1;
      if (!eights || eights > largest_page || (width && eights * width > span.size())) return false;
      const size_t taken = std::min<size_t>(n, eights * 8);
      if (!packed(Span{span.at, span.end}, taken)) return false;
      span.at += eights * width;
      n -= taken;
    } else {
      const unsigned n_bytes = (width + 7) / 8;
      const size_t taken = std::min<uint64_t>(n, head >> 1);
      if (!taken || span.size() < n_bytes) return false;
      uint32_t value = 0;
      for (unsigned k = 0; k < n_bytes; k++) value |= static_cast<uint32_t>(*span.at++) << 8 * k;
      if (!run(value, taken)) return false;
      n -= taken;
    }
  }
  return true;
}

// Whether all cells are there: ones, and nothing else.
bool all_there(Span levels, size_t n) {
  return read_hybrid(
      levels, 1, n, [](uint32_t value, size_t) { return value == 1; },
      [](Span bits, size_t taken) {
        const size_t whole = taken / 8;
        for (size_t k = 0; k < whole; k++) {
          if (bits.at[k] != 0xff) return false;
        }
        const unsigned rest = (1u << taken % 8) - 1;
        return !rest || (bits.at[whole] & rest) == rest;
      });
}

inline uint64_t load_eight(const uint8_t* at) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
#else
  uint64_t word = 0;
  for (unsigned k = 0; k < 8; k++) word |= static_cast<uint64_t>(at[k]) << 8 * k;
  return word;
#endif
}

// The word at some bit of a span, as far as the span goes.
inline uint64_t word_at(Span span, size_t byte) {
  if (span.size() >= byte + 8) return load_eight(span.at + byte);
  uint8_t room[8] = {};
  if (span.size() > byte) std::memcpy(room, span.at + byte, span.size() - byte);
  return load_eight(room);
}

// What codes of a few bits stand for: a table of 256, so that none leads out of it. The highest code is handed on.
template <unsigned width, class Number>
void unpack_few(Span span, size_t n, const Number* table, Number* out, uint32_t& highest) {
  constexpr uint64_t mask = (1u << width) - 1;
  uint32_t most = 0;
  size_t k = 0;
  const auto eight = [&](uint64_t word, size_t count) {
    for (size_t j = 0; j < count; j++) {
      const uint32_t code = static_cast<uint32_t>(word >> width * j & mask);
      most = std::max(most, code);
      out[k + j] = table[code];
    }
  };
  const size_t n_whole = span.size() >= 8 ? (span.size() - 8) / width + 1 : 0;  // eights that a word can be read for
  for (; k + 8 <= n && k / 8 < n_whole; k += 8) eight(load_eight(span.at + k / 8 * width), 8);
  for (; k < n; k += 8) eight(word_at(span, k / 8 * width), std::min<size_t>(8, n - k));
  highest = std::max(highest, most);
}

template <class Number>
using Unpack = void (*)(Span, size_t, const Number*, Number*, uint32_t&);

// The codes of a page, as what they stand for. `table` has at least 256 places, `known` of which mean something.
template <class Number>
bool read_codes(Span span, size_t n, const std::vector<Number>& table, size_t known, Number* out) {
  static constexpr Unpack<Number> few[] = {
      unpack_few<1, Number>, unpack_few<2, Number>, unpack_few<3, Number>, unpack_few<4, Number>,
      unpack_few<5, Number>, unpack_few<6, Number>, unpack_few<7, Number>, unpack_few<8, Number>};
  if (!n) return true;
  if (span.at == span.end) return false;
  const unsigned width = *span.at++;
  if (width > 32) return false;
  uint32_t highest = 0;
  const bool whole = read_hybrid(
      span, width, n,
      [&](uint32_t code, size_t taken) {
        if (code >= known) return false;
        std::fill_n(out, taken, table[code]);
        out += taken;
        return true;
      },
      [&](Span bits, size_t taken) {
        if (width == 0) {
          std::fill_n(out, taken, table[0]);
        } else if (width <= 8) {
          few[width - 1](bits, taken, table.data(), out, highest);
        } else {
          const uint64_t mask = (uint64_t{1} << width) - 1;
          for (size_t k = 0; k < taken; k++) {
            const size_t bit = k * width;
            const uint64_t code = word_at(bits, bit / 8) >> bit % 8 & mask;
            if (code >= known) return false;
            out[k] = table[code];
          }
        }
        out += taken;
        return true;
      });
  return whole && highest < known;
}

// ---- Pages ---------------------------------------------------------------------------------------------------------------

// A page as it was before it was compressed; `room` keeps it, if it was.
bool unpacked(Span page, size_t size, Codec codec, std::vector<uint8_t>& room, Span& found) {
  if (codec == Codec::none) {
    found = page;
    return page.size() == size;
  }
  room.resize(size);
  found = {room.data(), room.data() + size};
  return unsnap(page.at, page.end, room.data(), size);
}

// Calls `dictionary(bytes, n)` for the dictionary and `values(bytes, n, encoding, first)` for every page of values.
template <class Dictionary, class Values>
bool read_pages(Span chunk, Codec codec, bool optional, size_t n, const Dictionary& dictionary, const Values& values) {
  std::vector<uint8_t> room;
  size_t done = 0;
  bool named = false;
  while (done < n) {
    Header header;
    if (!read_header(chunk, header) || static_cast<uint64_t>(header.packed_size) > chunk.size()) return false;
    const Span packed{chunk.at, chunk.at + header.packed_size};
    chunk.at = packed.end;
    const size_t size = static_cast<size_t>(header.size), n_values = static_cast<size_t>(header.n_values);
    Span page{};
    if (header.type == dictionary_page) {
      if (named || (header.encoding != plain && header.encoding != plain_dictionary)) return false;
      if (!unpacked(packed, size, codec, room, page) || !dictionary(page, n_values)) return false;
      named = true;
      continue;
    }
    if (n_values > n - done) return false;
    if (header.type == data_page) {
      if (!unpacked(packed, size, codec, room, page)) return false;
      if (optional) {
        uint32_t n_bytes;
        if (header.level_encoding != run_lengths || !read_word(page, n_bytes) || n_bytes > page.size()) return false;
        if (!all_there({page.at, page.at + n_bytes}, n_values)) return false;
        page.at += n_bytes;
      }
    } else if (header.type == data_page_2) {
      const size_t level_bytes = static_cast<size_t>(header.level_bytes);
      if (header.n_nulls || header.repeated_bytes || header.level_bytes < 0) return false;
      if (level_bytes > packed.size() || level_bytes > size) return false;
      if (optional && !all_there({packed.at, packed.at + level_bytes}, n_values)) return false;
      const Span rest{packed.at + level_bytes, packed.end};
      if (!unpacked(rest, size - level_bytes, header.packed ? codec : Codec::none, room, page)) return false;
    } else {
      return false;
    }
    if (!values(page, n_values, header.encoding, done)) return false;
    done += n_values;
  }
  return true;
}

// A number of the file as one of another type, if it is one: four bytes may stand for numbers without a sign.
template <class Number>
bool fits(const uint8_t* at, size_t n_bytes, Number& number) {
  int64_t value;
  if (n_bytes == 8) {
    value = static_cast<int64_t>(load_eight(at));
  } else {
    Span span{at, at + 4};
    uint32_t word = 0;
    read_word(span, word);
    value = static_cast<int32_t>(word);
  }
  number = static_cast<Number>(value);
  return sizeof(Number) >= n_bytes || static_cast<int64_t>(number) == value;
}

}  // namespace

bool unsnap(const uint8_t* at, const uint8_t* end, uint8_t* out, size_t size) {
  Span span{at, end};
  uint64_t said;
  if (!read_varint(span, said) || said != size) return false;
  uint8_t* to = out;
  uint8_t* const stop = out + size;
  while (span.at < span.end) {
    const uint8_t tag = *span.at++;
    size_t length = (tag >> 2) + size_t{1}, back;
    if ((tag & 3) == 0) {
      if (length > 60) {
        const size_t n_bytes = length - 60;
        if (span.size() < n_bytes) return false;
        length = 1;
        for (size_t k = 0; k < n_bytes; k++) length += static_cast<size_t>(*span.at++) << 8 * k;
      }
      if (length > span.size() || length > static_cast<size_t>(stop - to)) return false;
      std::memcpy(to, span.at, length);
      span.at += length;
      to += length;
      continue;
    }
    const size_t n_bytes = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if (span.size() < n_bytes) return false;
    back = 0;
    for (size_t k = 0; k < n_bytes; k++) back |= static_cast<size_t>(*span.at++) << 8 * k;
    if (n_bytes == 1) {
      length = (tag >> 2 & 7) + size_t{4};
      back |= static_cast<size_t>(tag >> 5) << 8;
    }
    if (!back || back > static_cast<size_t>(to - out) || length > static_cast<size_t>(stop - to)) return false;
    if (back >= length) {
      std::memcpy(to, to - back, length);
    } else {
      for (size_t k = 0; k < length; k++) to[k] = (to - back)[k];  // what was just written is copied on
    }
    to += length;
  }
  return to == stop;
}

template <class Number>
bool read_numbers(const uint8_t* pages, size_t size, Codec codec, bool optional, size_t n_bytes, Number* out, size_t n) {
  std::vector<Number> table(256);
  size_t known = 0;
  return read_pages(
      {pages, pages + size}, codec, optional, n,
      [&](Span page, size_t n_values) {
        if (n_values > page.size() / n_bytes) return false;
        table.resize(std::max<size_t>(256, n_values));
        known = n_values;
        for (size_t k = 0; k < n_values; k++) {
          if (!fits(page.at + k * n_bytes, n_bytes, table[k])) return false;
        }
        return true;
      },
      [&](Span page, size_t n_values, int64_t encoding, size_t first) {
        if (encoding == plain_dictionary || encoding == dictionary_codes) {
          return read_codes(page, n_values, table, known, out + first);
        }
        if (encoding != plain || n_values > page.size() / n_bytes) return false;
        for (size_t k = 0; k < n_values; k++) {
          if (!fits(page.at + k * n_bytes, n_bytes, out[first + k])) return false;
        }
        return true;
      });
}

#define TALLYBAYES_READ(Number) \
  template bool read_numbers(const uint8_t*, size_t, Codec, bool, size_t, Number*, size_t);
TALLYBAYES_READ(int8_t)
TALLYBAYES_READ(uint8_t)
TALLYBAYES_READ(int16_t)
TALLYBAYES_READ(uint16_t)
TALLYBAYES_READ(int32_t)
TALLYBAYES_READ(uint32_t)
TALLYBAYES_READ(int64_t)
TALLYBAYES_READ(uint64_t)
#undef TALLYBAYES_READ

bool read_labels(const uint8_t* pages, size_t size, Codec codec, bool optional, int32_t* out, size_t n, Labels& labels) {
  std::vector<int32_t> table(256);
  size_t known = 0;
  labels.offsets.assign(1, 0);
  return read_pages(
      {pages, pages + size}, codec, optional, n,
      [&](Span page, size_t n_values) {
        if (n_values > page.size() / 4) return false;  // a length each
        table.resize(std::max<size_t>(256, n_values));
        known = n_values;
        for (size_t k = 0; k < n_values; k++) {
          uint32_t length;
          if (!read_word(page, length) || length > page.size()) return false;
          labels.bytes.insert(labels.bytes.end(), page.at, page.at + length);
          labels.offsets.push_back(static_cast<int32_t>(labels.bytes.size()));
          table[k] = static_cast<int32_t>(k);
          page.at += length;
        }
        return true;
      },
      [&](Span page, size_t n_values, int64_t encoding, size_t first) {
        return (encoding == plain_dictionary || encoding == dictionary_codes) &&
               read_codes(page, n_values, table, known, out + first);
      });
}

}  // namespace tallybayes
