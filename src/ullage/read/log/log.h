// SPDX-License-Identifier: Apache-2.0
#pragma once

// Out-of-memory errors and memory_summary tables in a text of any length: a whole log, a pasted message.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// BadFile when the text holds neither an error nor a table; the message says what was looked for.
Result<trace::Log> read_log(std::string_view text, const std::string& name);

}  // namespace ullage::read
