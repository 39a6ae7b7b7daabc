// Python bindings for strings.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_strings(nanobind::module_& module);

}  // namespace tallybayes
