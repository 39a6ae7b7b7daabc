// Python bindings for text.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_text(nanobind::module_& module);

}  // namespace tallybayes
