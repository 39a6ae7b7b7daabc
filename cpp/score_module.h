// The scoring part of the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

// The name of the instruction set in use; given by module.cpp.
const char* chosen_tier();
void define_scoring(nanobind::module_& module);

}  // namespace tallybayes
