// SPDX-License-Identifier: Apache-2.0
#pragma once

// The strip below the timeline: which phase the program was in, and where its steps begin.

#include "ullage/report/html_timeline.h"

namespace ullage::report {

// Phases as the file's annotations name them, else as the stacks tell them; at most some hundred, the longest. Fills
// `strips` and `steps`.
void add_strips(const trace::Trace& trace, const std::vector<trace::StackMeaning>& meanings, Timeline& timeline);

}  // namespace ullage::report
