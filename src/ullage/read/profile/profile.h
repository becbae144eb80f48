// SPDX-License-Identifier: Apache-2.0
#pragma once

// A PyTorch profiler (Kineto) trace with memory events: JSON, unzipped already.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <string>
#include <string_view>

namespace ullage::read {

// BadFile with `name:offset`: no JSON, no trace, or a trace without memory events (it says which option records them).
Result<trace::Profile> read_profile(std::string_view json, const std::string& name);

}  // namespace ullage::read
