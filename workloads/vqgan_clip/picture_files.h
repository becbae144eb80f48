// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the picture so far and, with --video or --zoom-video, numbered frames in steps/ beside it. A reader never sees
// a partial file. Each file holds its prompts (PNG text "comment", as in the published program).

#include "ullage/base/result.h"
#include "ullage/runtime/ops/torch_compat.h"
#include "vqgan_clip/options.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace ullage::vqgan_clip {

class PictureFiles final {
 public:
  explicit PictureFiles(const Options& options);

  // Makes the folders and tries to write in them. BadArgument if that fails.
  Status prepare() const;

  // `picture` is (1,3,H,W) of 0..1.
  Status save(const at::Tensor& picture, const Phrase& phrase) const;
  Status save_frame(const at::Tensor& picture, const Phrase& phrase, std::int64_t number) const;

 private:
  const Options& options_;
  std::string folder_;  // the picture's folder
};

}  // namespace ullage::vqgan_clip
