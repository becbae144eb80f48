// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loop of a rehearsal: what `ullage predict PROGRAM` runs. A program gives what it offers to vary and a function
// that does a few steps at the sizes of one take.

#include "program/progress.h"
#include "ullage/base/knob.h"
#include "ullage/base/result.h"
#include "ullage/runtime/runtime.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace ullage::torch_program {

// Returns false at once if this process was not started for a rehearsal. Otherwise calls `one` for each take, from
// making the networks to destroying them, and returns true. `threads` of torch; 0: its own choice.
Result<bool> rehearse(const runtime::RehearsalOffer& offer, std::int64_t threads, program::Progress& progress,
                      const std::function<Status(const std::vector<Knob>& knobs)>& one);

}  // namespace ullage::torch_program
