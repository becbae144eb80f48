// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a timeline to the explicit list of actions that makes it happen.

#include "ullage/plan/problem/timeline.h"

namespace ullage::plan {

// `record` is of `choice`.
Schedule emit(const Problem& problem, const Choice& choice, const Record& record);

}  // namespace ullage::plan
