// The part of the Python module on the pages of Parquet files.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_parquet(nanobind::module_& module);

}  // namespace tallybayes
