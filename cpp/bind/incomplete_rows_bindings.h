// Python bindings for rows with missing values.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_partly_known(nanobind::module_& module);

}  // namespace tallybayes
