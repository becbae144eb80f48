// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage predict vqgan-clip` runs: the search at a few small picture sizes, from which its needs at the given
// size are predicted.

#include "program/progress.h"
#include "ullage/base/result.h"
#include "vqgan_clip/options.h"

namespace ullage::vqgan_clip {

// Returns false at once if this process was not started for a rehearsal. Otherwise runs two steps at each small size,
// with every augmentation on every cutout, and converts the picture as for saving. It reads the weights, but not the
// pictures that options name, and writes nothing. No tensor's size depends on what a picture shows.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::vqgan_clip
