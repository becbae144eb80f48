// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out-of-memory errors and memory_summary tables in text of any length, from one pasted message to a whole log.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// Keeps up to 10,000 different errors and as many tables. Errors with the same wording, figures, device and rank count
// as one that is repeated. General words ("not enough memory") count as errors only if the text has no other error and
// no table. The first 1000 errors keep their traceback and the lines around them.
// BadFile with `name` if the text holds neither an error nor a table; the message says what was searched for.
Result<trace::Log> read_log(std::string_view text, const std::string& name);

}  // namespace ullage::read
