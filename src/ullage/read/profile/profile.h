// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a PyTorch profiler (Kineto) trace with memory events: JSON, already unzipped. `ullage explain` reads such
// files.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// Returns the trace; it does not refer to `json` any more. BadFile if `json` is no JSON (one that is cut off, too), no
// profiler trace, or a trace without memory events. The message begins with `name`, the file's name, and the offset in
// bytes. For a trace without memory events it names the option that records them.
Result<trace::Profile> read_profile(std::string_view json, const std::string& name);

}  // namespace ullage::read
