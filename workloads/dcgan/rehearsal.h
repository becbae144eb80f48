// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict dcgan` runs: the program's first two steps and a sample, at small batches. It writes nothing.
// Without --data it makes up pictures.

#include "dcgan/options.h"
#include "program/progress.h"

#include "ullage/base/result.h"

namespace ullage::dcgan {

// Runs the rehearsal and returns true if this process was started for one; otherwise returns false at once.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::dcgan
