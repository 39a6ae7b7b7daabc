// The part of the Python module on rows of which some cells are missing.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_partly_known(nanobind::module_& module);

}  // namespace tallybayes
