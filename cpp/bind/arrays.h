// Conversion of Python arrays to views and back. Inputs are borrowed through the buffer protocol: without copies, with
// any strides, and possibly read-only. Outputs are vectors that are handed over to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <vector>

#include "core/driver_types.h"

namespace tallybayes {

namespace nb = nanobind;

// Holds the buffer of one array while its views are in use.
class Borrowed {
 public:
  explicit Borrowed(nb::handle array);
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept;
  Borrowed& operator=(const Borrowed&) = delete;

  Column column() const;  // of a 1-D array
  Table table() const;    // of a 2-D array
  size_t dimensions() const { return static_cast<size_t>(buffer_.ndim); }
  size_t length(size_t axis) const { return static_cast<size_t>(buffer_.shape[axis]); }
  ptrdiff_t stride(size_t axis) const { return buffer_.strides[axis]; }
  Bytes data() const { return static_cast<Bytes>(buffer_.buf); }
  size_t n_bytes() const { return static_cast<size_t>(buffer_.len); }
  Type type() const;
  // A contiguous 1-D array of this type, or a TypeError.
  const Borrowed& require(std::initializer_list<Type> types) const;

 private:
  Py_buffer buffer_;
};

// A table with the buffers behind it.
struct BorrowedTable {
  std::vector<Borrowed> buffers;
  std::vector<Column> columns;
  Table table;
};
BorrowedTable borrow_table(nb::handle columns, size_t rows_if_empty);

// Groups and weights with their buffers; n_rows if one of them has it.
struct BorrowedRows {
  std::vector<Borrowed> buffers;
  Groups groups;
  Weights weights;
  size_t n_rows = 0;
};
BorrowedRows borrow_rows(nb::handle group, size_t n_groups, nb::handle weight);
void check_rows(const BorrowedRows&, size_t n_rows);

template <class T>
nb::object to_array(std::vector<T>&& values, std::initializer_list<size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, "tallybayes", [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(kept->data(), shape, owner).cast();
}

}  // namespace tallybayes
