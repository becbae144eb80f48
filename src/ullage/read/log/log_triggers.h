// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the few places of a log that deserve a closer look. A log of gigabytes may hold one message. The rest is
// skipped at the speed of memory, several letters at a time (Wu and Manber's search for many words at once).

#include <cstddef>
#include <span>
#include <string_view>

namespace ullage::read {

// Returns the trigger words, in lower case, with the blanks that a log has in them. Each lead of message_forms.h
// contains one, so a new lead may need a new word. For a lead with the gap `*` there is a word for each usual spelling
// ("code 137", "code: 137"). Long messages contain several, so that one stays whole if a line break splits another.
std::span<const std::string_view> trigger_words();

// Returns the offset of the first trigger word at or after `from`, ignoring case; npos if there is none.
std::size_t find_trigger(std::string_view text, std::size_t from);

}  // namespace ullage::read
