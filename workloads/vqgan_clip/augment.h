// SPDX-License-Identifier: Apache-2.0
#pragma once

// The augmentations of VQGAN-CLIP's cutouts as kornia 0.5.4 does them: drawn first, then applied, so that pictures can
// be taken in any groups. Nothing is drawn while they are applied, and what is drawn has no gradient.

#include "vqgan_clip/figures.h"
#include "vqgan_clip/options.h"

#include <functional>
#include <vector>

namespace ullage::vqgan_clip {

struct Augmentation {
  double probability = 0;
  std::function<Draws(const Drawing&)> figures;  // for those pictures that are chosen
  std::function<at::Tensor(const at::Tensor& pictures, const Draws& figures)> change;  // in any dtype
  bool together = false;                                                               // one decision for all pictures

  // chosen (N; truth values), and the figures of those.
  Draws draw(const Drawing& drawing) const;
  // The same where every picture is chosen.
  Draws draw_all(const Drawing& drawing) const;
  // Those chosen changed. Where none is, there may be no figures.
  at::Tensor apply(const at::Tensor& pictures, const Draws& drawn) const;
};

// Those of a method, in order; `asked` counts with Latest and NrUpdated alone, the others have their own.
std::vector<Augmentation> augmentations_of(CutMethod method, const std::vector<Augment>& asked);

}  // namespace ullage::vqgan_clip
