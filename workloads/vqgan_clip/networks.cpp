// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/networks.h"

#include <ATen/ATen.h>

#include <utility>

namespace ullage::vqgan_clip {
namespace {

using torch_program::Source;

std::vector<std::vector<at::Tensor>> vectors_of_story(const ModelFiles& files, const Source& clip) {
  std::vector<std::vector<at::Tensor>> story;
  if (files.story.empty()) return story;
  const TextTower tower(files.clip.shape, clip);
  for (const auto& texts : files.story) {
    auto& vectors = story.emplace_back();
    for (const Tokens& tokens : texts) vectors.push_back(tower(at::tensor(tokens, at::kLong).unsqueeze(0)));
  }
  return story;
}

bool encodes(const Options& options) {
  return options.zoom_video || !options.init_image.empty() || options.init_noise != InitNoise::None;
}

// Slices have 1,024 tokens, so the largest matrices have 64 MiB for 16,384 codes. Slicing attention pays only if its
// matrix is larger than the decoder's other tensors: above 1,500 pixels squared.
Slices slices_of(const Options& options, const PictureSize& size) {
  constexpr std::int64_t kRows = 1024, kLargePicture = 1500 * 1500;
  Slices slices;
  if (options.allows(Lever::CodeRows)) slices.codes = kRows;
  if (options.allows(Lever::AttentionRows) && size.width * size.height > kLargePicture) slices.attention = kRows;
  return slices;
}

}  // namespace

Networks load_networks(ModelFiles files, const Options& options, at::ScalarType type) {
  const Source clip(std::exchange(files.clip.weights, {}), type, "clip");
  const Source vqgan(std::exchange(files.vqgan, {}), type, "vqgan");
  Networks networks;
  networks.story = vectors_of_story(files, clip);
  networks.tower = std::make_unique<const ImageTower>(files.clip.shape, clip, options.precision);
  networks.token_side = files.config.token_side();
  const Slices slices = slices_of(options, files.size.size);
  networks.decoder = std::make_unique<const Decoder>(files.config, vqgan, slices, options.precision);
  if (encodes(options)) networks.encoder = std::make_unique<const Encoder>(files.config, vqgan, slices);
  return networks;
}

}  // namespace ullage::vqgan_clip
