#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_mixtures(nanobind::module_&);

}  // namespace tallybayes
