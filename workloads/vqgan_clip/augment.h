// SPDX-License-Identifier: Apache-2.0
#pragma once

// The augmentations of VQGAN-CLIP's cutouts, as in kornia 0.5.4. Random numbers are drawn first and applied later, so
// that pictures can be processed in any groups. Applying draws nothing, and the draws have no gradient.

#include "vqgan_clip/figures.h"
#include "vqgan_clip/options.h"

#include <functional>
#include <vector>

namespace ullage::vqgan_clip {

struct Augmentation {
  double probability = 0;
  std::function<Draws(const Drawing&)> figures;                                        // draws for the chosen pictures
  std::function<at::Tensor(const at::Tensor& pictures, const Draws& figures)> change;  // pictures of any dtype
  bool together = false;                                                               // one decision for all pictures

  // Draws which pictures are chosen ("chosen", N booleans), and the numbers for those.
  Draws draw(const Drawing& drawing) const;
  // Draws the numbers as if every picture was chosen.
  Draws draw_all(const Drawing& drawing) const;
  // Returns the pictures with the chosen ones changed. If none is chosen, `drawn` needs only "chosen".
  at::Tensor apply(const at::Tensor& pictures, const Draws& drawn) const;
};

// Returns the augmentations of a method, in order. Only Latest and NrUpdated use `asked`; the others have fixed lists.
std::vector<Augmentation> augmentations_of(CutMethod method, const std::vector<Augment>& asked);

}  // namespace ullage::vqgan_clip
