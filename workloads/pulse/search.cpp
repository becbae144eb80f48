// SPDX-License-Identifier: Apache-2.0
#include "pulse/search.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ullage::pulse {
namespace {

using at::Tensor;

bool is_zero_layer(const Options& options, std::int64_t layer) {
  const auto& bad = options.bad_noise_layers;
  return options.noise_type == NoiseType::Zero || std::find(bad.begin(), bad.end(), layer) != bad.end();
}

// sqrt(sum x^2 + 1e-9) over all dimensions from the third on: one radius per 512-vector or noise image.
Tensor radius(const Tensor& x) {
  std::vector<std::int64_t> dimensions(static_cast<std::size_t>(x.dim() - 2));
  std::iota(dimensions.begin(), dimensions.end(), std::int64_t{2});
  return (x.pow(2).sum(dimensions, /*keepdim=*/true) + 1e-9).sqrt();
}

}  // namespace

Start draw_start(const Options& options, std::int64_t layers, std::span<const std::uint64_t> seeds) {
  Start start;
  std::vector<Tensor> latents;
  std::vector<std::vector<Tensor>> noises(static_cast<std::size_t>(layers));
  for (const std::uint64_t seed : seeds) {
    const at::Generator generator = at::detail::createCPUGenerator(seed);
    latents.push_back(at::randn({1, options.tile_latent ? 1 : layers, kLatent}, generator, at::kFloat));
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::int64_t side = side_of_layer(i);
      const std::vector<std::int64_t> shape = {1, 1, side, side};
      noises[static_cast<std::size_t>(i)].push_back(
          is_zero_layer(options, i) ? at::zeros(shape) : at::randn(shape, generator, at::kFloat));
    }
  }
  start.latents = at::cat(latents);
  for (const auto& of_layer : noises) start.noises.push_back(at::cat(of_layer));
  return start;
}

Search::Search(const Synthesis& synthesis, GaussianFit fit, const Tensor& wanted, Start start, const Options& options)
    : synthesis_(synthesis),
      fit_(std::move(fit)),
      options_(options),
      downscale_(synthesis.resolution(), wanted.size(2), wanted.scalar_type()),
      loss_(options.loss, wanted, options.eps),
      latents_(std::move(start.latents)),
      noises_(std::move(start.noises)),
      loss_scale_(options.precision) {
  searched_.push_back(latents_);
  for (const std::size_t i : trained_noises()) searched_.push_back(noises_[i]);
  for (Tensor& x : searched_) {
    radii_.push_back(radius(x));
    x.requires_grad_(true);
  }
  optimizer_ = torch_program::make_optimizer(options.optimizer, searched_);
}

std::vector<std::size_t> Search::trained_noises() const {
  std::vector<std::size_t> trained;
  if (options_.noise_type != NoiseType::Trainable) return trained;
  const std::int64_t most = std::min(options_.trainable_noise_layers, synthesis_.layers());
  for (std::int64_t i = 0; i < most; ++i) {
    if (!is_zero_layer(options_, i)) trained.push_back(static_cast<std::size_t>(i));
  }
  return trained;
}

double Search::learning_rate() const {
  return options_.learning_rate * rate_factor(options_.schedule, done_, options_.steps);
}

Tensor Search::synthesise(const Tensor& w) const {
  const train::AutocastGuard guard = torch_program::autocast(options_.precision);
  return synthesis_(w, noises_).to(w.scalar_type());
}

Evaluation Search::evaluate() {
  for (Tensor& x : searched_) x.mutable_grad().reset();
  const Tensor v = latents_.expand({-1, synthesis_.layers(), -1});
  const Tensor w = at::leaky_relu(v * fit_.deviation + fit_.mean, 0.2);
  const Tensor image = (synthesise(w) + 1) / 2;
  const Tensor low = downscale_(image);
  LossFigures loss = loss_(w, low);
  loss_scale_.scale(loss.total.sum()).backward();
  loss.total = loss.total.detach();
  for (auto& [term, figure] : loss.terms) figure = figure.detach();
  return {image.detach(), low.detach(), std::move(loss), loss_.distance(low.detach())};
}

void Search::project() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < searched_.size(); ++i)
    searched_[i].copy_(searched_[i] / radius(searched_[i]) * radii_[i]);
}

Evaluation Search::step() {
  Evaluation seen = evaluate();
  scaler_said_ = loss_scale_.step(*optimizer_, searched_, learning_rate());
  project();
  ++done_;
  return seen;
}

}  // namespace ullage::pulse
