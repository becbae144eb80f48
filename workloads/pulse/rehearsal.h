// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict pulse` runs: the first two steps of a search, at small batches. It writes nothing. If --input
// does not exist it makes up the picture.

#include "program/progress.h"
#include "pulse/options.h"
#include "ullage/base/result.h"

namespace ullage::pulse {

// Runs the rehearsal and returns true if this process was started for one; otherwise returns false at once.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::pulse
