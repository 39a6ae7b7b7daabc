#include "bind/arrays.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace tallybayes {

Borrowed::Borrowed(nb::handle array) {
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw nb::python_error();
}

Borrowed::Borrowed(Borrowed&& other) noexcept : buffer_(other.buffer_) {
  other.buffer_.obj = nullptr;
  other.buffer_.buf = nullptr;
}

Borrowed::~Borrowed() {
  if (buffer_.obj) PyBuffer_Release(&buffer_);
}

Type Borrowed::type() const {
  const char* format = buffer_.format ? buffer_.format : "B";
  while (*format && std::strchr("@=<^", *format)) format++;
  const Py_ssize_t size = buffer_.itemsize;
  const bool single = format[0] != '\0' && format[1] == '\0';
  auto integer = [&](Type one, Type two, Type four, Type eight) {
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : eight;
  };
  if (single && size <= 8) {
    if (std::strchr("bhilq", *format)) return integer(Type::int8, Type::int16, Type::int32, Type::int64);
    if (std::strchr("BHILQ", *format)) return integer(Type::uint8, Type::uint16, Type::uint32, Type::uint64);
    if (*format == '?') return Type::boolean;
    if (*format == 'f') return Type::float32;
    if (*format == 'd') return Type::float64;
  }
  throw nb::type_error("the array has an element type that the kernels cannot read");
}

Column Borrowed::column() const {
  if (dimensions() != 1) throw nb::value_error("expected an array of one dimension");
  return {data(), stride(0), type()};
}

Table Borrowed::table() const {
  if (dimensions() != 2) throw nb::value_error("expected an array of two dimensions");
  Table table;
  table.n_rows = length(0);
  table.n_columns = length(1);
  table.data = data();
  table.row_stride = stride(0);
  table.column_stride = stride(1);
  table.type = type();
  return table;
}

const Borrowed& Borrowed::require(std::initializer_list<Type> types) const {
  const Column only = column();
  const bool aligned = reinterpret_cast<uintptr_t>(only.data) % size_of(only.type) == 0;
  for (const Type type : types) {
    if (only.type == type && aligned && (only.contiguous() || length(0) <= 1)) return *this;
  }
  throw nb::type_error("expected a contiguous array of another element type");
}

BorrowedTable borrow_table(nb::handle columns, size_t rows_if_empty) {
  BorrowedTable result;
  if (!nb::isinstance<nb::list>(columns) && !nb::isinstance<nb::tuple>(columns)) {
    result.buffers.emplace_back(columns);
    result.table = result.buffers[0].table();
    return result;
  }
  for (nb::handle column : columns) {
    result.buffers.emplace_back(column);
    result.columns.push_back(result.buffers.back().column());
  }
  result.table.separate = true;
  result.table.columns = result.columns.data();
  result.table.n_columns = result.columns.size();
  result.table.n_rows = result.buffers.empty() ? rows_if_empty : result.buffers[0].length(0);
  for (const Borrowed& buffer : result.buffers) {
    if (buffer.length(0) != result.table.n_rows) throw nb::value_error("the columns differ in their number of rows");
  }
  return result;
}

BorrowedRows borrow_rows(nb::handle group, size_t n_groups, nb::handle weight) {
  BorrowedRows result;
  result.groups.n_groups = n_groups;
  if (!weight.is_none()) {
    result.buffers.emplace_back(weight);
    const Borrowed& buffer = result.buffers.back();
    if (buffer.type() != Type::float64) throw nb::type_error("expected weights of type float64");
    result.weights.data = buffer.data();
    result.weights.row_stride = buffer.stride(0);
    result.weights.soft = buffer.dimensions() == 2;
    result.weights.group_stride = result.weights.soft ? buffer.stride(1) : 0;
    if (result.weights.soft && buffer.length(1) != n_groups) throw nb::value_error("expected a weight for every group");
    result.n_rows = buffer.length(0);
  }
  if (!group.is_none()) {
    result.buffers.emplace_back(group);
    const Borrowed& buffer = result.buffers.back();
    result.groups.codes = buffer.column();
    if (result.groups.codes.type >= Type::float32) throw nb::type_error("expected integer group codes");
    result.n_rows = buffer.length(0);
  } else if (!result.weights.soft && n_groups != 1) {
    throw nb::value_error("expected one group where no codes are given");
  }
  return result;
}

void check_rows(const BorrowedRows& rows, size_t n_rows) {
  for (const Borrowed& buffer : rows.buffers) {
    if (buffer.length(0) != n_rows) throw nb::value_error("group, weight and columns differ in their number of rows");
  }
}

}  // namespace tallybayes
