// SPDX-License-Identifier: Apache-2.0
#pragma once

// The networks of one run in memory: what it needs and no more. Files are let go of as they are loaded.

#include "vqgan_clip/clip.h"
#include "vqgan_clip/model_files.h"
#include "vqgan_clip/vqgan.h"

#include <memory>
#include <vector>

namespace ullage::vqgan_clip {

struct Networks {
  std::unique_ptr<const Decoder> decoder;
  std::unique_ptr<const Encoder> encoder;  // null where nothing is encoded
  std::unique_ptr<const ImageTower> tower;
  std::int64_t token_side = 0;                 // pixels
  std::vector<std::vector<at::Tensor>> story;  // CLIP's vector (1,D) of each text
};

// Texts become vectors, and their tower is gone before the others come.
Networks load_networks(ModelFiles files, const Options& options, at::ScalarType type);

}  // namespace ullage::vqgan_clip
