// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs what `ullage predict upscale` measures: some tiles from the middle of a picture, at small widths of the picture
// and small heights of the tile. It writes nothing. If --input does not exist, it makes up the picture. The height of a
// picture is no knob: a higher picture has more tiles, not larger ones. Edit this when a knob of the prediction
// changes.

#include "program/progress.h"
#include "ullage/base/result.h"
#include "upscale/options.h"

namespace ullage::upscale {

// Runs the rehearsal and returns true if this process was started for one; otherwise returns false at once.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::upscale
