// Python bindings for the concatenation of arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_joining(nanobind::module_& module);

}  // namespace tallybayes
