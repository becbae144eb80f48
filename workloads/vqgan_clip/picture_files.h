// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run writes: the picture so far, and with --video and --zoom-video numbered frames in steps/ beside it. Each
// file is whole whenever somebody looks, and tells its prompts (PNG text "comment", as the published program).

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

  // Makes the folders and tries to write there. BadArgument.
  Status prepare() const;

  // `picture` (1,3,H,W) of 0..1.
  Status save(const at::Tensor& picture, const Phrase& phrase) const;
  Status save_frame(const at::Tensor& picture, const Phrase& phrase, std::int64_t number) const;

 private:
  const Options& options_;
  std::string folder_;  // of the picture
};

}  // namespace ullage::vqgan_clip
