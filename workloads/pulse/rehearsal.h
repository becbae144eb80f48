// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict pulse` runs: the first two steps of a search, at small batches. Nothing is written; the picture
// is made up where no --input is there.

#include "program/progress.h"
#include "pulse/options.h"
#include "ullage/base/result.h"

namespace ullage::pulse {

// True: this process was started for that, and it is done.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::pulse
