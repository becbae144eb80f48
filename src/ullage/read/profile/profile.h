// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a PyTorch profiler (Kineto) trace with memory events: JSON, already unzipped.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// BadFile with `name:offset` if `json` is no JSON, no trace, or a trace without memory events. For the last, the
// message names the option that records them.
Result<trace::Profile> read_profile(std::string_view json, const std::string& name);

}  // namespace ullage::read
