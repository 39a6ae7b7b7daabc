// Python bindings for forests and chains of trees whose leaves hold counts.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_forests(nanobind::module_& module);

}  // namespace tallybayes
