// Python bindings for hidden Markov models.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_chains(nanobind::module_& module);

}  // namespace tallybayes
