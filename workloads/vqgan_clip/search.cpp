// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/search.h"

#include "ullage/base/check.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace ullage::vqgan_clip {

using at::Tensor;

namespace {

constexpr std::int64_t kCutsAtOnce = 8;  // a quarter of the default 32, and of the memory of CLIP and the cutouts

}  // namespace

Tensor random_tokens(const Tensor& codebook, std::int64_t height, std::int64_t width) {
  const Tensor indices = at::randint(codebook.size(0), {height * width}, at::kLong);
  return at::embedding(codebook, indices).view({1, height, width, -1}).permute({0, 3, 1, 2}).contiguous();
}

Search::Search(const Decoder& decoder, const ImageTower& tower, const Cutouts& cutouts, Tensor z,
               const Options& options)
    : decoder_(decoder), tower_(tower), cutouts_(cutouts), options_(options), loss_scale_(options.precision) {
  restart(std::move(z));
}

void Search::restart(Tensor z) {
  z_ = std::move(z).requires_grad_(true);
  optimizer_ = torch_program::make_optimizer(options_.optimizer, {z_});
}

// mse(z, 0) * weight / (2 i + 1) / 2.
Tensor Search::hold_near_zero() {
  const double shrinking = 1.0F / static_cast<float>(2 * done_ + 1);
  const Tensor loss = z_.pow(2).mean() * (shrinking * options_.init_weight) / 2;
  loss_scale_.scale(loss).backward();
  return loss.detach();
}

Search::Seen Search::look(const Tensor& picture, const Draws& draws, double share) {
  const Tensor features = tower_(cutouts_.apply(picture, draws));
  std::vector<Tensor> losses;
  for (const PromptLoss& prompt : prompts_) losses.push_back(prompt(features));
  Tensor all = at::stack(losses);
  if (share < 1) all = all * share;
  loss_scale_.scale(all.sum()).backward();
  return {features.detach(), all.detach()};
}

// Weights each part by its share of the cutouts, because losses are means over them. The picture's gradient is summed
// over all parts before it goes back through the decoder.
Search::Seen Search::look_in_parts(const Tensor& picture, const Draws& draws) {
  const Tensor shown = picture.detach().requires_grad_(true);
  std::vector<Tensor> features;
  Tensor losses;
  const std::int64_t all = cutouts_.count();
  for (std::int64_t first = 0; first < all; first += kCutsAtOnce) {
    const std::int64_t count = std::min(kCutsAtOnce, all - first);
    Seen part = look(shown, part_of(draws, first, count), static_cast<double>(count) / static_cast<double>(all));
    features.push_back(std::move(part.features));
    losses = losses.defined() ? losses + part.losses : part.losses;
  }
  picture.backward(shown.grad());
  return {at::cat(features), losses};
}

Evaluation Search::evaluate(const Draws& draws) {
  ULLAGE_CHECK(!prompts_.empty(), "there are prompts");
  z_.mutable_grad().reset();
  const Tensor picture = decoder_(z_);
  Seen seen = options_.allows(Lever::CutChunks) ? look_in_parts(picture, draws) : look(picture, draws, 1);
  if (options_.init_weight > 0) seen.losses = at::cat({hold_near_zero().unsqueeze(0), seen.losses});
  return {picture.detach(), std::move(seen.features), std::move(seen.losses)};
}

Evaluation Search::step(const Draws& draws) {
  Evaluation seen = evaluate(draws);
  scaler_said_ = loss_scale_.step(*optimizer_, {z_}, options_.learning_rate);
  const at::NoGradGuard no_grad;
  z_.copy_(z_.maximum(decoder_.least()).minimum(decoder_.greatest()));
  ++done_;
  return seen;
}

}  // namespace ullage::vqgan_clip
