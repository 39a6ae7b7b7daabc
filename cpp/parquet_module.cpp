// The pages of Parquet files, for Python.
#include "parquet_module.h"

#include "arrays.h"
#include "parquet.h"

namespace tallybayes {

namespace {

template <class Number>
using Room = nb::ndarray<Number, nb::numpy, nb::ndim<1>, nb::c_contig>;

Codec codec_of(bool compressed) { return compressed ? Codec::snappy : Codec::none; }
const uint8_t* bytes_of(const Borrowed& pages) { return reinterpret_cast<const uint8_t*>(pages.data()); }

template <class Number>
bool python_page_numbers(nb::handle pages, bool compressed, bool optional, size_t n_bytes, Room<Number> out) {
  const Borrowed borrowed(pages);
  borrowed.require({Type::uint8});
  if (n_bytes != 4 && n_bytes != 8) throw nb::value_error("expected numbers of 4 or 8 bytes");
  const nb::gil_scoped_release released;
  return read_numbers(bytes_of(borrowed), borrowed.n_bytes(), codec_of(compressed), optional, n_bytes, out.data(),
                      out.shape(0));
}

nb::object python_page_labels(nb::handle pages, bool compressed, bool optional, Room<int32_t> out) {
  const Borrowed borrowed(pages);
  borrowed.require({Type::uint8});
  Labels labels;
  bool good;
  {
    const nb::gil_scoped_release released;
    good = read_labels(bytes_of(borrowed), borrowed.n_bytes(), codec_of(compressed), optional, out.data(), out.shape(0),
                       labels);
  }
  if (!good) return nb::none();
  const size_t n_offsets = labels.offsets.size(), n_bytes = labels.bytes.size();
  return nb::make_tuple(to_array(std::move(labels.offsets), {n_offsets}), to_array(std::move(labels.bytes), {n_bytes}));
}

template <class... Numbers>
void define_numbers(nb::module_& module) {
  (module.def("page_numbers", &python_page_numbers<Numbers>, nb::arg("pages"), nb::arg("compressed"), nb::arg("optional"),
              nb::arg("n_bytes"), nb::arg("out").noconvert()),
   ...);
}

}  // namespace

void define_parquet(nb::module_& module) {
  define_numbers<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(module);
  module.def("page_labels", &python_page_labels, nb::arg("pages"), nb::arg("compressed"), nb::arg("optional"),
             nb::arg("out").noconvert());
}

}  // namespace tallybayes
