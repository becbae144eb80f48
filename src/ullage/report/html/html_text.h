// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes text of unknown origin safe for a page: it can neither end an element nor begin one.

#include <string>
#include <string_view>

namespace ullage::report {

// Escapes text for the content of an element or for an attribute in double quotes. Control characters, marks that
// change the direction of writing, and bytes that are not UTF-8 become '?'. Line breaks and tabs become blanks, as on
// the terminal.
std::string escaped(std::string_view text);

// Makes JSON safe for a script element. '<' occurs in JSON only inside strings, where it is written as an escape.
std::string in_script(std::string_view json);

}  // namespace ullage::report
