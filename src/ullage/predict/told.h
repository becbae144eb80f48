// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a take does at an event, in words for people: "aten::mean (MeanBackward0) frees 4 B, in backward, step 2".

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::predict {

// The innermost op that is running at the event on whatever thread; kNoOp: none.
OpId op_at(const trace::Take& take, EventId event);

// The phase that the program told around the event; empty: none.
std::string phase_told(const trace::Take& take, EventId event);

std::string what_happens(const trace::Take& take, EventId event);

// "batch=3", "batch=3, size=64"; empty without knobs.
std::string knobs_text(const std::vector<Knob>& knobs);

// "2,066".
std::string count_text(std::uint64_t count);

// "1 event", "2,066 events".
std::string count_of(std::uint64_t count, const std::string& what);

}  // namespace ullage::predict
