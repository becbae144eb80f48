// SPDX-License-Identifier: Apache-2.0
#pragma once

// torch.cuda.memory._dump_snapshot's pickle, every layout since 2.0, and the list that memory_snapshot() returns.

#include "ullage/base/result.h"
#include "ullage/trace/recording/recording.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::read {

// BadFile with `name:offset`: not a pickle, a pickle that would run code, damaged, or none of the layouts.
Result<trace::Recording> read_snapshot(std::span<const std::byte> pickle, const std::string& name);

}  // namespace ullage::read
