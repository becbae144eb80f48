// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text of unknown origin put into a page: it can neither end an element nor begin one.

#include <string>
#include <string_view>

namespace ullage::report {

// For the content of an element and for an attribute between double quotes. Control characters, marks that turn the
// direction of writing and what is not UTF-8 become '?' as on the terminal.
std::string escaped(std::string_view text);

// JSON that may stand in a script element: '<' only ever stands within its strings and is written as an escape there.
std::string in_script(std::string_view json);

}  // namespace ullage::report
