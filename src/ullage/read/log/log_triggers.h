// SPDX-License-Identifier: Apache-2.0
#pragma once

// A quick look for the few places of a log where it is worth looking closer. A log of gigabytes holds one message; the
// rest passes at the speed of memory, several letters at a time (Wu and Manber's search for many words at once).

#include <cstddef>
#include <span>
#include <string_view>

namespace ullage::read {

// The words looked for, in lower case. Each lead of message_forms.h holds one; long messages hold several, so that one
// is left whole where a line break cuts another apart.
std::span<const std::string_view> trigger_words();

// Offset of the first of them at or behind `from`, in any case of letters; npos: none.
std::size_t find_trigger(std::string_view text, std::size_t from);

}  // namespace ullage::read
