// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes for people what a take does at an event: "aten::mean (MeanBackward0) frees 4 B, in backward, step 2".

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::predict {

// The op of the event: the one that begins, ends or allocates there. Else the last one begun that is still running, on
// any thread. kNoOp if there is none.
OpId op_at(const trace::Take& take, EventId event);

// The phase around the event that the program names; empty if there is none.
std::string phase_around(const trace::Take& take, EventId event);

std::string what_happens(const trace::Take& take, EventId event);

// "batch=3", "batch=3, size=64"; empty if there are no knobs.
std::string knobs_text(const std::vector<Knob>& knobs);

// "2,066".
std::string count_text(std::uint64_t count);

// "1 event", "2,066 events".
std::string count_of(std::uint64_t count, const std::string& what);

}  // namespace ullage::predict
