// The part of the Python module on text.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_text(nanobind::module_& module);

}  // namespace tallybayes
