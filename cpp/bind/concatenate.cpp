// Concatenation of arrays. There can be as many as there are sequences, so the cost per array must be minimal.
#include "bind/concatenate.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "bind/arrays.h"
#include "core/parallel.h"

namespace tallybayes {

namespace {

// The first fields of every NumPy array, part of its binary interface. The first array of a list is also read through
// the buffer protocol; if the two differ, nothing is concatenated.
struct ArrayFields {
  PyObject_HEAD
  char* data;
  int n_axes;
  Py_ssize_t *shape, *strides;
  PyObject *base, *dtype;
};

struct Piece {
  const char* data;
  size_t n_bytes;
};

const ArrayFields& fields_of(PyObject* array) { return *reinterpret_cast<const ArrayFields*>(array); }

// The size in bytes of an array's rows; false if they are not contiguous.
bool contiguous(const ArrayFields& array, size_t item_bytes, size_t& n_bytes) {
  n_bytes = item_bytes;
  for (int axis = array.n_axes; axis-- > 0;) {
    if (array.strides[axis] != static_cast<Py_ssize_t>(n_bytes) && array.shape[axis] != 1) return false;
    n_bytes *= static_cast<size_t>(array.shape[axis]);
  }
  return true;
}

bool alike(const ArrayFields& a, const ArrayFields& b) {
  if (a.dtype != b.dtype || a.n_axes != b.n_axes) return false;
  for (int axis = 1; axis < a.n_axes; axis++) {
    if (a.shape[axis] != b.shape[axis]) return false;
  }
  return true;
}

bool as_the_buffer_says(nb::handle array) {
  const Borrowed borrowed(array);
  const ArrayFields& fields = fields_of(array.ptr());
  if (static_cast<size_t>(fields.n_axes) != borrowed.dimensions()) return false;
  for (size_t axis = 0; axis < borrowed.dimensions(); axis++) {
    if (static_cast<size_t>(fields.shape[axis]) != borrowed.length(axis)) return false;
    if (fields.strides[axis] != borrowed.stride(axis)) return false;
  }
  return reinterpret_cast<Bytes>(fields.data) == borrowed.data();
}

// Converts integers to 16 bits; false if one does not fit.
template <class Source>
bool shorten(const Piece& piece, int16_t* to) {
  uint32_t bad = 0;
  for (size_t k = 0; k < piece.n_bytes / sizeof(Source); k++) {
    Source x;
    std::memcpy(&x, piece.data + k * sizeof(Source), sizeof(Source));
    to[k] = static_cast<int16_t>(x);
    bad |= static_cast<uint32_t>(to[k] != x);
  }
  return bad == 0;
}

// Calls copy(piece, bytes before it) for all pieces on several threads; false if one could not be copied.
template <class Copy>
bool copy_pieces(const std::vector<Piece>& pieces, const std::vector<size_t>& before, size_t threads, Copy copy) {
  constexpr size_t part_bytes = size_t{1} << 19;
  const Grid grid(before.back(), part_bytes);
  auto process = [&](int&, size_t part, Order&) {
    const auto begins = [&](size_t at) {
      return static_cast<size_t>(std::lower_bound(before.begin(), before.end() - 1, at) - before.begin());
    };
    const size_t last = part + 1 < grid.n_parts ? begins(grid.last(part)) : pieces.size();
    for (size_t k = begins(grid.first(part)); k < last; k++) {
      if (!copy(pieces[k], before[k])) return false;
    }
    return true;
  };
  const size_t used = choose_threads(threads, grid.n_parts, static_cast<double>(before.back()) / sizeof(double));
  return run_parts(grid.n_parts, used, 1, [] { return 0; }, process, [](int&) {});
}

// Memory of the result. No Python code runs between inspecting the arrays and copying them, so that none can change.
using Owned = std::unique_ptr<char, void (*)(void*)>;

Owned room_for(size_t n_bytes) {
  constexpr size_t line = 64, large_page = size_t{1} << 21;
  // Smaller results use memory that was used before: new huge pages would have to be cleared for every call.
  const size_t unit = n_bytes >= 4 * large_page ? large_page : line;
  void* memory = nullptr;
  if (posix_memalign(&memory, unit, n_bytes / unit * unit + unit) != 0) throw std::bad_alloc();
#if defined(__linux__)
  if (unit == large_page) madvise(memory, n_bytes, MADV_HUGEPAGE);
#endif
  return Owned(static_cast<char*>(memory), &std::free);
}

nb::object handed_over(Owned bytes, size_t n_bytes, size_t item_bytes) {
  char* data = bytes.get();
  const nb::capsule owner(data, "tallybayes", [](void* p) noexcept { std::free(p); });
  bytes.release();
  return nb::make_tuple(nb::ndarray<nb::numpy, uint8_t>(data, {n_bytes}, owner).cast(), item_bytes);
}

// Several arrays as pieces of memory, and the number of bytes before each and in total.
struct Pieces {
  std::vector<Piece> each;
  std::vector<size_t> before;

  size_t n_bytes() const { return before.back(); }
};

// Empty if the arrays are not alike, not contiguous, or all empty.
std::optional<Pieces> look(const nb::list& parts, int64_t* lengths, size_t item_bytes) {
  const size_t n = nb::len(parts);
  if (!as_the_buffer_says(parts[0])) return std::nullopt;
  Pieces pieces{std::vector<Piece>(n), std::vector<size_t>(n + 1, 0)};
  PyObject* first = nullptr;
  PyTypeObject* type = Py_TYPE(PyList_GetItem(parts.ptr(), 0));
  for (size_t k = 0; k < n; k++) {
    PyObject* part = PyList_GetItem(parts.ptr(), static_cast<Py_ssize_t>(k));
    if (Py_TYPE(part) != type) return std::nullopt;
    const ArrayFields& array = fields_of(part);
    if (array.n_axes < 1) return std::nullopt;
    lengths[k] = array.shape[0];
    Piece& piece = pieces.each[k] = {array.data, 0};
    if (array.shape[0] != 0) {
      if (first == nullptr) first = part;
      if (!alike(array, fields_of(first)) || !contiguous(array, item_bytes, piece.n_bytes)) return std::nullopt;
    }
    pieces.before[k + 1] = pieces.before[k] + piece.n_bytes;
  }
  if (first == nullptr) return std::nullopt;
  return pieces;
}

// Start of the first piece if every piece begins where the previous one ends, as slices of one array do.
const char* lie_in_one(const Pieces& pieces, size_t item_bytes) {
  const char *begin = nullptr, *end = nullptr;
  for (const Piece& piece : pieces.each) {
    if (piece.n_bytes == 0) continue;
    if (begin == nullptr) begin = end = piece.data;
    if (piece.data != end) return nullptr;
    end += piece.n_bytes;
  }
  return reinterpret_cast<uintptr_t>(begin) % item_bytes == 0 ? begin : nullptr;
}

// The concatenated bytes and the item size: two bytes if `shorter` integers all fit. Consecutive slices are read in
// place and kept alive by the list, which must not be shared. Returns only the size in bytes if it exceeds `at_most`,
// and None if the arrays are not alike or not contiguous. The GIL is held throughout.
nb::object python_join_arrays(nb::list parts, nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> lengths,
                              bool shorter, size_t item_bytes, size_t at_most, size_t threads) {
  const size_t n = nb::len(parts);
  if (n == 0 || lengths.shape(0) != n) throw nb::value_error("expected a length for every array");
  const std::optional<Pieces> found = look(parts, lengths.data(), item_bytes);
  if (!found) return nb::none();
  const Pieces& pieces = *found;
  const size_t n_bytes = pieces.n_bytes();
  if (const char* begin = lie_in_one(pieces, item_bytes)) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(begin);
    return nb::make_tuple(nb::ndarray<nb::numpy, const uint8_t>(bytes, {n_bytes}, parts).cast(), item_bytes);
  }
  if (n_bytes > at_most) return nb::int_(n_bytes);
  if (shorter && (item_bytes == sizeof(int64_t) || item_bytes == sizeof(int32_t))) {
    const size_t n_short = n_bytes / item_bytes * sizeof(int16_t);
    Owned made = room_for(n_short);
    auto* to = reinterpret_cast<int16_t*>(made.get());
    const bool good = copy_pieces(pieces.each, pieces.before, threads, [&](const Piece& piece, size_t at) {
      return item_bytes == 8 ? shorten<int64_t>(piece, to + at / 8) : shorten<int32_t>(piece, to + at / 4);
    });
    if (good) return handed_over(std::move(made), n_short, sizeof(int16_t));
  }
  Owned made = room_for(n_bytes);
  copy_pieces(pieces.each, pieces.before, threads, [&](const Piece& piece, size_t at) {
    std::memcpy(made.get() + at, piece.data, piece.n_bytes);
    return true;
  });
  return handed_over(std::move(made), n_bytes, item_bytes);
}

}  // namespace

void define_joining(nb::module_& module) {
  module.def("join_arrays", &python_join_arrays, nb::arg("parts"), nb::arg("lengths"), nb::arg("shorter"),
             nb::arg("item_bytes"), nb::arg("at_most"), nb::arg("threads"));
}

}  // namespace tallybayes
