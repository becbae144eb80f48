// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out-of-memory errors and memory_summary tables in text of any length, from one pasted message to a whole log.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// BadFile with `name` if the text holds neither an error nor a table; the message says what was searched for.
Result<trace::Log> read_log(std::string_view text, const std::string& name);

}  // namespace ullage::read
