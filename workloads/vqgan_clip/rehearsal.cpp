// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/rehearsal.h"

#include "torch_program/pixels.h"
#include "torch_program/precision.h"
#include "torch_program/rehearsal.h"
#include "ullage/runtime/runtime.h"
#include "vqgan_clip/model_files.h"
#include "vqgan_clip/networks.h"
#include "vqgan_clip/search.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

constexpr int kSteps = 2;  // the first makes the optimizer's state; the second is like all later ones
// Tokens per side of the smallest picture. 9 x 9 tokens of 256 channels are 20,736 elements. From 20,481 on, torch
// convolves a single picture through oneDNN, as it does larger ones.
constexpr std::int64_t kLeastTokens = 9;
constexpr std::int64_t kSizes = 3;

at::Tensor some_picture(const PictureSize& size, at::ScalarType type) {
  return at::full({1, 3, size.height, size.width}, 0.5, type);
}

at::Tensor some_tokens(const Networks& networks, const PictureSize& size, at::ScalarType type) {
  const at::Tensor& codebook = networks.decoder->codebook();
  if (networks.encoder != nullptr) return (*networks.encoder)(some_picture(size, type), codebook);
  return random_tokens(codebook, size.height / networks.token_side, size.width / networks.token_side);
}

// Takes the phrase with the most texts, and as many pictures and directions as the options ask for.
std::vector<PromptLoss> some_prompts(const Networks& networks, const Cutouts& cutouts, const Options& options,
                                     const PictureSize& size, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  std::vector<PromptLoss> prompts;
  if (!networks.story.empty()) {
    const auto texts = [](const std::vector<at::Tensor>& phrase) { return phrase.size(); };
    for (const at::Tensor& text : *std::ranges::max_element(networks.story, {}, texts))
      prompts.emplace_back(text, 1, 0);
  }
  for (const Prompt& prompt : options.image_prompts) {
    const at::Tensor cuts = cutouts.apply(some_picture(size, type), cutouts.draw_all(size.height, size.width));
    prompts.emplace_back((*networks.tower)(cuts), prompt.weight, prompt.stop);
  }
  for (const NoisePrompt& prompt : options.noise_prompts) {
    prompts.push_back(loss_of_noise(prompt, networks.tower->shape().width, type));
  }
  return prompts;
}

Status rehearse(const Options& options) {
  ULLAGE_TRY_VALUE(auto files, open_model_files(options));
  const PictureSize size = files.size.size;
  const at::ScalarType type = options.in_double ? at::kDouble : at::kFloat;
  const Networks networks = load_networks(std::move(files), options, type);
  const Cutouts cutouts(networks.tower->shape().resolution, options.cuts, options.cut_method, options.cut_power,
                        options.augments);
  Search search(*networks.decoder, *networks.tower, cutouts, some_tokens(networks, size, type), options);
  search.set_prompts(some_prompts(networks, cutouts, options, size, type));
  Evaluation seen;
  for (int i = 0; i < kSteps; ++i) {
    seen = {};
    seen = search.step(cutouts.draw_all(size.height, size.width));
    runtime::mark_step();
    torch_program::to_picture(seen.picture.select(0, 0));
  }
  return success();
}

std::vector<std::string> left_out(const Options& options) {
  std::vector<std::string> parts;
  if (!options.init_image.empty() || !options.image_prompts.empty()) parts.push_back("loading pictures");
  if (options.zoom_video) parts.push_back("zoom");
  if (options.allows(Lever::CodeRows) || options.allows(Lever::AttentionRows)) {
    parts.push_back("what rows of codes and of attention save");
  }
  return parts;
}

// Offers width and height in pixels, after rounding to whole tokens.
Result<runtime::RehearsalOffer> offer(const Options& options) {
  ULLAGE_TRY_VALUE(const auto files, open_model_files(options));
  const PictureSize& size = files.size.size;
  std::vector<std::int64_t> sides;
  for (std::int64_t i = 0; i < kSizes; ++i) sides.push_back((kLeastTokens + i) * files.config.token_side());
  return runtime::RehearsalOffer{{{"width", size.width}, {"height", size.height}},
                                 {sides, sides},
                                 {program::precision_choice(options.precision)},
                                 left_out(options),
                                 {"width", "height"}};
}

}  // namespace

Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress) {
  if (!runtime::rehearsing()) return false;
  ULLAGE_TRY_VALUE(const auto offered, offer(options));
  torch_program::note(options.precision);
  return torch_program::rehearse(offered, options.threads, progress, [&](const std::vector<Knob>& knobs) {
    Options smaller = options;
    smaller.size = {knobs[0].value, knobs[1].value};
    // Leaves out the levers that work in slices, because the number of slices follows no law in the picture's size.
    // Without them the program needs more.
    std::erase_if(smaller.allowed, [](Lever one) { return one != Lever::CutChunks; });
    return rehearse(smaller);
  });
}

}  // namespace ullage::vqgan_clip
