// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads the networks that a run needs and no others. Lets go of the files' pages as it loads them.

#include "vqgan_clip/clip.h"
#include "vqgan_clip/model_files.h"
#include "vqgan_clip/vqgan.h"

#include <memory>
#include <vector>

namespace ullage::vqgan_clip {

struct Networks {
  std::unique_ptr<const Decoder> decoder;
  std::unique_ptr<const Encoder> encoder;  // null if nothing is encoded
  std::unique_ptr<const ImageTower> tower;
  std::int64_t token_side = 0;                 // pixels
  std::vector<std::vector<at::Tensor>> story;  // CLIP's vector (1,D) of each text
};

// Turns the texts into vectors first, and frees the text tower before it loads the other networks.
Networks load_networks(ModelFiles files, const Options& options, at::ScalarType type);

}  // namespace ullage::vqgan_clip
