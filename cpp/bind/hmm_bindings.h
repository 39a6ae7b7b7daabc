// The part of the Python module on chains of hidden states.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_chains(nanobind::module_& module);

}  // namespace tallybayes
