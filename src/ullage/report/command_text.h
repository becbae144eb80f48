// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes commands as a person would type them, for "next: ..." lines.

#include "ullage/base/bytes.h"

#include <string>
#include <vector>

namespace ullage::report {

// Quotes `word` so that a shell takes it as one word. Control characters become blanks.
std::string quoted(const std::string& word);

// Returns `ullage BEGIN TARGET`, each word of TARGET quoted, BEGIN as it is. If the line has more than 100 bytes, words
// at its end are left out and " ..." is added.
std::string command_line(const std::string& begin, const std::vector<std::string>& target);

// As command_line(), but with all words, so that the line can be copied.
std::string whole_command_line(const std::string& begin, const std::vector<std::string>& target);

// Returns "2GiB" or "2401MiB": rounded up to MiB, and one word that an option accepts ("2.00 GiB" would be two).
std::string as_option(Bytes bytes);

// The same for a memory that a person stated, which is never rounded up: "2GiB", "2401MiB", or the number of bytes if
// that is no whole MiB.
std::string as_stated(Bytes bytes);

}  // namespace ullage::report
