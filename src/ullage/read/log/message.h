// SPDX-License-Identifier: Apache-2.0
#pragma once

// One message of lack of memory in a stretch of a log: found by the words that give it away, read clause by clause, and
// ended where its wording ends, over as many lines as it was wrapped to.

#include "ullage/trace/recording/out_of_memory.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct FoundMessage {
  trace::OutOfMemory error;         // without line, traceback, lines before
  std::size_t lead = 0;             // offset in the text of the words that gave it away
  std::size_t end = 0;              // offset behind its last letter
  std::vector<std::string> unread;  // sizes of the message that are no figure of `error`, as written: "12.00gib"
};

// The first message whose lead begins in [from, to). Nothing before `not_before` is of it.
std::optional<FoundMessage> find_message(std::string_view text, std::size_t from, std::size_t to,
                                         std::size_t not_before = 0);

}  // namespace ullage::read
