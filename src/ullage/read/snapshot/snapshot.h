// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the pickle of torch.cuda.memory._dump_snapshot, in every layout since torch 2.0, and a pickle of the list that
// memory_snapshot() returns.

#include "ullage/base/result.h"
#include "ullage/trace/recording/recording.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::read {

// BadFile with `name:offset` if `pickle` is no pickle, would run code, is damaged, or has none of the layouts.
Result<trace::Recording> read_snapshot(std::span<const std::byte> pickle, const std::string& name);

}  // namespace ullage::read
