// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a log says just before an error: the Python traceback that ends in it, and the lines before that.

#include "ullage/read/log/log_lines.h"
#include "ullage/trace/recording/stacks.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct Surroundings {
  std::vector<trace::Frame> frames;  // innermost first
  std::vector<std::string> code;     // of each frame the line of source, or empty
  std::vector<std::string> before;   // lines before the traceback, or before the error without one; oldest first
};

// Of the error that begins in this line. Lines of other ranks among those of the traceback are passed over.
// A traceback that begins before `not_before` is another error's.
Surroundings surroundings_of(std::string_view text, const Line& error, std::size_t not_before);

}  // namespace ullage::read
