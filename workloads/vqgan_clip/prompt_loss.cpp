// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/prompt_loss.h"

#include "vqgan_clip/straight_through.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

constexpr std::int64_t kRows = 2;  // the dimension of a vector's elements

Tensor of_length_one(const Tensor& x) {
  return x / at::linalg_vector_norm(x, 2, kRows, /*keepdim=*/true).clamp_min(1e-12);
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

PromptLoss::PromptLoss(Tensor wanted, double weight, double stop)
    : wanted_(std::move(wanted)), weight_(weight), stop_(stop) {}

Tensor PromptLoss::operator()(const Tensor& features) const {
  const Tensor apart = of_length_one(features.unsqueeze(1)) - of_length_one(wanted_.unsqueeze(0));
  const Tensor distance = at::linalg_vector_norm(apart, 2, kRows).div(2).arcsin().pow(2).mul(2) * sign(weight_);
  const Tensor stopped = at::maximum(distance, at::scalar_tensor(stop_, distance.options()));
  return std::abs(weight_) * replace_grad(distance, stopped).mean();
}

PromptLoss loss_of_noise(const NoisePrompt& prompt, std::int64_t width, at::ScalarType type) {
  const auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(prompt.seed));
  Tensor direction = at::empty({1, width}, at::kFloat).normal_(0, 1, generator).to(type);
  return {std::move(direction), prompt.weight, -std::numeric_limits<double>::infinity()};
}

}  // namespace ullage::vqgan_clip
