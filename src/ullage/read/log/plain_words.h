// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds sentences that say in plain words that memory ran out, or that a process was ended for lack of it: those of a
// person, and those of a program that no table knows. What a sentence must consist of is in plain_tables.h. Such a
// sentence says less than a program's own message (message.h), so it counts only if a text has no such message.

#include "ullage/read/log/message.h"

#include <optional>
#include <string_view>

namespace ullage::read {

// Returns the sentence that says it most clearly, or none. Of a text that is longer than 256 KiB only the end is read,
// and of that the first 400 phrases are weighed. Its form is "plain", "plain-device", "plain-host", "plain-killed",
// "plain-spill" or "plain-growth". The first and the last leave open whose memory it was. Advice and documentation ("If
// you get OOM, lower max_num_seqs") do not count.
std::optional<FoundMessage> find_plain_words(std::string_view text);

}  // namespace ullage::read
