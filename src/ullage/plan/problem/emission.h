// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the record of a timeline into the schedule that makes it happen.

#include "ullage/plan/problem/timeline.h"

namespace ullage::plan {

// `record` is that of a Timeline run of `choice`, which was possible.
Schedule emit(const Problem& problem, const Choice& choice, const Record& record);

}  // namespace ullage::plan
