// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds one out-of-memory message in a stretch of a log by its lead, the words that give it away. Then reads its
// clauses until the wording ends, over as many lines as the message was wrapped to.

#include "ullage/trace/recording/out_of_memory.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct FoundMessage {
  trace::OutOfMemory error;         // without line, traceback, code, before and after
  std::size_t lead = 0;             // offset of the lead in the text
  std::size_t end = 0;              // offset after its last letter
  std::vector<std::string> unread;  // sizes that no clause reads, in squeezed text (message_text.h): "12.00gib"
};

// Returns the first message whose lead begins in [from, to). If that lead is from the middle of a message, the
// beginning may be found up to 600 bytes before it. Text before offset `not_before` is never part of a message. Skips
// advice, lines that report no failure ("OOMKilled: false"), and code that quotes a message without figures. Reads at
// most 8 KiB of a message.
std::optional<FoundMessage> find_message(std::string_view text, std::size_t from, std::size_t to,
                                         std::size_t not_before = 0);

struct Lead;  // message_forms.h

// Reads the message of this wording whose lead begins at offset `at`. None if a logger's prefix covers that place.
std::optional<FoundMessage> read_message_at(std::string_view text, std::size_t at, const Lead& lead);

// Returns whether the line is a statement of a program's source, which may quote a message.
bool is_code(std::string_view line);

// Returns whether the line is about memory but reports no failure. TensorFlow and XLA try a larger piece first, and if
// that is refused they say that it is no failure. A container's state lists "OOMKilled: false".
bool is_no_failure(std::string_view line);

}  // namespace ullage::read
