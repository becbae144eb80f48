// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text of a foreign file on its way into messages and reports: only what can be printed and is valid UTF-8 comes
// through.

#include <cstddef>
#include <string>
#include <string_view>

namespace ullage::read {

// Control characters, which could steer a terminal, become '?', bytes that are no UTF-8 (surrogates among them) the
// replacement character U+FFFD; what is longer than `most` bytes is cut, at the border of a character, and ends in
// "...".
std::string printable(std::string_view raw, std::size_t most);
inline constexpr std::size_t kNameInMessage = 200;  // bytes of a name that a message shows

}  // namespace ullage::read
