// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes text of a foreign file safe for messages and reports: the result is valid UTF-8 without control characters.

#include <cstddef>
#include <string>
#include <string_view>

namespace ullage::read {

// Replaces each control character by '?', because it could steer a terminal. Replaces each byte that is not UTF-8
// (surrogates included) by U+FFFD. Cuts the result between two characters to at most `most` bytes; then "..." is
// appended, which does not count.
std::string printable(std::string_view raw, std::size_t most);
inline constexpr std::size_t kNameInMessage = 200;  // bytes of a name that a message shows

}  // namespace ullage::read
