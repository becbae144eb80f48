// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads what a log says around an error: the Python traceback that ends with it, the lines before that, and the lines
// after the error.

#include "ullage/read/log/log_lines.h"
#include "ullage/trace/recording/stacks.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct Surroundings {
  std::vector<trace::Frame> frames;  // innermost first
  std::vector<std::string> code;     // each frame's line of source, or empty
  std::vector<std::string> before;   // up to 20 lines before it (without a traceback: before the error), oldest first
};

// Reads upwards from `error`, the line in which the error begins. Skips lines of other ranks that are mixed in. Ignores
// a traceback that begins before offset `not_before`, because it belongs to another error. Knows the tracebacks of
// Python, of the package rich and of IPython, also if a notebook or a JSON log keeps them in a string.
Surroundings surroundings_of(std::string_view text, const Line& error, std::size_t not_before);

// Reads up to 10 lines below the line in which the error ends.
std::vector<std::string> lines_after(std::string_view text, const Line& error);

}  // namespace ullage::read
