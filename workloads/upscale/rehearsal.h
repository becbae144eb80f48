// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict upscale` runs: some tiles in the middle of a picture, at small widths and tiles. It writes
// nothing. If --input does not exist it makes up the picture. The height of a picture is no knob, because no tile's
// bytes depend on it.

#include "program/progress.h"
#include "ullage/base/result.h"
#include "upscale/options.h"

namespace ullage::upscale {

// Runs the rehearsal and returns true if this process was started for one; otherwise returns false at once.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::upscale
