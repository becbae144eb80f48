// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens the files of a run and checks them and the prompts, before anything is loaded.

#include "vqgan_clip/clip_file.h"
#include "vqgan_clip/model_config.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/picture_size.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ullage::vqgan_clip {

using Tokens = std::vector<std::int64_t>;

struct ModelFiles {
  ModelConfig config;
  std::shared_ptr<const read::Weights> vqgan;
  ClipFile clip;
  std::vector<std::vector<Tokens>> story;  // tokens of each text of Options::story
  UsedSize size;
};

// Errors: NotFound, BadFile, BadArgument (the size, or a text of too many tokens). Opens the vocabulary only if there
// are texts.
Result<ModelFiles> open_model_files(const Options& options);

}  // namespace ullage::vqgan_clip
