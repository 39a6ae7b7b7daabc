// The part of the Python module on arrays laid end to end.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_joining(nanobind::module_& module);

}  // namespace tallybayes
