// Python bindings for scoring.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_scoring(nanobind::module_& module);

}  // namespace tallybayes
