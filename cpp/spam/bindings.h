// Python bindings for mails.
#pragma once

#include <nanobind/nanobind.h>

namespace tallybayes {

void define_mail(nanobind::module_& module);
void define_mail_words(nanobind::module_& module);

}  // namespace tallybayes
