// SPDX-License-Identifier: Apache-2.0
#pragma once

// Commands as a person would type them, for "next: ..." lines.

#include "ullage/base/bytes.h"

#include <string>
#include <vector>

namespace ullage::report {

// As a shell takes it for one word; control characters become blanks.
std::string quoted(const std::string& word);

// `ullage BEGIN TARGET`; a long one is cut at a word.
std::string command_line(const std::string& begin, const std::vector<std::string>& target);

// "2GiB", "2401MiB": rounded up, and reads back as an option; "2.00 GiB" would be two words.
std::string as_option(Bytes bytes);

}  // namespace ullage::report
