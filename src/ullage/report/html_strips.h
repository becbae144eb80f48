// SPDX-License-Identifier: Apache-2.0
#pragma once

// The strip below the timeline: which phase the program was in, and where its steps begin.

#include "ullage/report/html_timeline.h"

namespace ullage::report {

// Phases as the file's annotations or the program itself name them, else as they are understood; at most some hundred,
// the longest. Fills `strips` and `steps`.
void add_strips(const InputHistory& history, Timeline& timeline);

}  // namespace ullage::report
