// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a search of a given size needs, tried at small pictures: for `ullage predict vqgan-clip`.

#include "program/progress.h"
#include "ullage/base/result.h"
#include "vqgan_clip/options.h"

namespace ullage::vqgan_clip {

// False: this is no rehearsal, and nothing was done. Else two steps at each small picture, with every augmentation on
// every cutout, and a picture as one is saved; the weights are read, the pictures that options name are not, and
// nothing is written. In rehearsals no figure depends on what is in a picture.
Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress);

}  // namespace ullage::vqgan_clip
