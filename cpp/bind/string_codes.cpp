// Encoding of strings as codes. Few short strings, such as labels, stay in the first-level cache.
#include "bind/string_codes.h"

#include <cstring>
#include <optional>

#include "bind/arrays.h"

namespace tallybayes {

namespace {

constexpr uint64_t odd = 0x9e3779b97f4a7c15;

inline uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 32)) * odd;
  return word ^ (word >> 29);
}

inline uint64_t eight_bytes(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

// A few bytes in the low end of a word, on little-endian and big-endian machines; zeros above.
inline uint64_t few_bytes(const char* at, size_t n) {
  uint64_t word = 0;
  std::memcpy(&word, at, n);
  return word;
}

// Hash table with open addressing. Keys are the first bytes of short strings, or a hash of all bytes of longer ones.
class Strings {
 public:
  explicit Strings(const char* data) : data_(data), slots_(1024) {}

  // The code of a string; a new code if the string is new.
  int32_t code(const char* at, size_t length, uint64_t word) {
    const uint64_t key = length <= 8 ? word : hash(at, length);
    size_t place = find(at, length, key);
    if (slots_[place].code < 0) {
      if (2 * (n_ + 1) > slots_.size()) {
        grow();
        place = find(at, length, key);
      }
      slots_[place] = {key, static_cast<uint64_t>(at - data_), length, static_cast<int32_t>(n_++)};
    }
    return slots_[place].code;
  }
  size_t size() const { return n_; }

 private:
  struct Slot {
    uint64_t key = 0, start = 0, length = 0;
    int32_t code = -1;
  };

  // For more than eight bytes; the last eight may overlap the previous ones.
  static uint64_t hash(const char* at, size_t length) {
    uint64_t sum = eight_bytes(at + length - 8) * odd;
    for (size_t k = 0; k + 8 < length; k += 8) sum = (sum ^ (sum >> 32) ^ eight_bytes(at + k)) * odd;
    return sum;
  }

  static bool same(const char* one, const char* other, size_t length) {
    if (eight_bytes(one + length - 8) != eight_bytes(other + length - 8)) return false;
    for (size_t k = 0; k + 8 < length; k += 8) {
      if (eight_bytes(one + k) != eight_bytes(other + k)) return false;
    }
    return true;
  }

  size_t find(const char* at, size_t length, uint64_t key) const {
    const size_t last = slots_.size() - 1;
    for (size_t place = mixed(key + length) & last;; place = (place + 1) & last) {
      const Slot& slot = slots_[place];
      if (slot.code < 0) return place;
      if (slot.key == key && slot.length == length &&
          (length <= 8 || same(data_ + slot.start, at, length))) {
        return place;
      }
    }
  }

  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.code >= 0) slots_[find(data_ + slot.start, slot.length, slot.key)] = slot;
    }
  }

  const char* data_;
  std::vector<Slot> slots_;
  size_t n_ = 0;
};

// False if an offset is outside the bytes.
template <class Offset>
bool encode(const Offset* offsets, size_t n_rows, const char* data, size_t n_bytes, const uint8_t* valid, size_t skipped,
            int32_t* codes, std::vector<int64_t>& first) {
  Strings seen(data);
  for (size_t row = 0; row < n_rows; row++) {
    if (valid && !(valid[(row + skipped) / 8] >> ((row + skipped) % 8) & 1)) {
      codes[row] = -1;
      continue;
    }
    const Offset start = offsets[row], stop = offsets[row + 1];
    if (start < 0 || stop < start || static_cast<uint64_t>(stop) > n_bytes) return false;
    const size_t length = static_cast<size_t>(stop - start);
    const char* at = data + start;
    uint64_t word = 0;
    if (length <= 8 && length > 0) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      if (static_cast<uint64_t>(start) + 8 <= n_bytes) {
        word = eight_bytes(at) & (~uint64_t{0} >> (64 - 8 * length));  // without a branch on the length
      } else {
        word = few_bytes(at, length);
      }
#else
      word = few_bytes(at, length);
#endif
    }
    codes[row] = seen.code(at, length, word);
    if (static_cast<size_t>(codes[row]) == first.size()) first.push_back(static_cast<int64_t>(row));
  }
  return true;
}

using Codes = nb::ndarray<int32_t, nb::numpy, nb::ndim<1>, nb::c_contig>;

nb::object python_distinct_strings(nb::handle offsets, nb::handle data, nb::handle valid, size_t skipped, Codes codes) {
  const Borrowed ends(offsets), bytes(data);
  const Type type = ends.require({Type::int32, Type::int64}).type();
  bytes.require({Type::uint8});
  std::optional<Borrowed> bits;
  if (!valid.is_none()) bits.emplace(valid).require({Type::uint8});
  if (ends.length(0) < 1 || ends.length(0) > size_t{1} << 31) throw nb::value_error("expected 1 to 2**31 offsets");
  const size_t n_rows = ends.length(0) - 1;
  if (bits && bits->length(0) * 8 < n_rows + skipped) throw nb::value_error("expected a bit for every row");
  const uint8_t* marks = bits ? reinterpret_cast<const uint8_t*>(bits->data()) : nullptr;
  const char* text = reinterpret_cast<const char*>(bytes.data());
  if (codes.shape(0) != n_rows) throw nb::value_error("expected room for a code of every row");
  std::vector<int64_t> first;
  bool good;
  {
    const nb::gil_scoped_release released;
    good = type == Type::int32 ? encode(reinterpret_cast<const int32_t*>(ends.data()), n_rows, text, bytes.n_bytes(),
                                        marks, skipped, codes.data(), first)
                               : encode(reinterpret_cast<const int64_t*>(ends.data()), n_rows, text, bytes.n_bytes(),
                                        marks, skipped, codes.data(), first);
  }
  if (!good) throw nb::index_error("an offset leads out of the bytes");
  const size_t n_found = first.size();
  return to_array(std::move(first), {n_found});
}

}  // namespace

void define_strings(nb::module_& module) {
  module.def("distinct_strings", &python_distinct_strings, nb::arg("offsets"), nb::arg("data"), nb::arg("valid").none(),
             nb::arg("skipped"), nb::arg("codes"));
}

}  // namespace tallybayes
