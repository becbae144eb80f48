// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict dcgan` runs: the program's first two steps and a sample, at small batches. Nothing is written;
// pictures are made up where no --data is given.

#include "dcgan/options.h"
#include "program/progress.h"

#include "ullage/base/result.h"

namespace ullage::dcgan {

// True: this process was started for that, and it is done.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::dcgan
