// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search of PULSE (arXiv 2003.03808) for one batch: finds latents v and noises whose picture, downscaled, is the
// one wanted. A step computes w = leaky_relu_0.2(v * deviation + mean), image = (G(w, noises) + 1) / 2 and the loss of
// D(image) and w, summed over the batch. It runs the backward and the optimizer, then scales everything searched back
// to the radius it began with.
//
// The pictures of a batch do not influence each other, and each is judged alone.

#include "pulse/downscaler.h"
#include "pulse/gaussian_fit.h"
#include "pulse/loss.h"
#include "pulse/networks.h"
#include "pulse/options.h"
#include "torch_program/optimizer.h"
#include "torch_program/precision.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ullage::pulse {

struct Start {
  at::Tensor latents;              // (B, L, 512), or with --tile-latent (B, 1, 512)
  std::vector<at::Tensor> noises;  // L tensors (B, 1, R_i, R_i)
};

// Draws N(0,1) in float32, one picture from each seed, whatever the batch: latents, then the noises in order of layers.
// A layer whose noise is zero draws nothing. torch.manual_seed and torch.randn in Python give the same numbers on a
// CPU.
Start draw_start(const Options& options, std::int64_t layers, std::span<const std::uint64_t> seeds);

// The result for the latents and noises before an update. No tensor has an autograd graph.
struct Evaluation {
  at::Tensor image;     // (B, 3, R, R), about 0..1
  at::Tensor low;       // D(image), (B, 3, s, s)
  LossFigures loss;     // (B) each
  at::Tensor distance;  // L2, (B)
};

class Search final {
 public:
  // `wanted` is (B, 3, s, s) in 0..1. All tensors have one type; the search changes those of `start`. `synthesis` and
  // `options` must outlive this object.
  Search(const Synthesis& synthesis, GaussianFit fit, const at::Tensor& wanted, Start start, const Options& options);

  Evaluation step();

  const at::Tensor& latents() const { return latents_; }
  const std::vector<at::Tensor>& noises() const { return noises_; }
  std::vector<std::size_t> trained_noises() const;  // layers whose noise is searched
  double learning_rate() const;                     // for the next step
  // In fp16, what the scaler said of the last step: see GradScaler::update().
  const Status& scaler_said() const { return scaler_said_; }

 private:
  Evaluation evaluate();
  at::Tensor synthesise(const at::Tensor& w) const;
  void project();

  const Synthesis& synthesis_;
  GaussianFit fit_;
  const Options& options_;
  Downscaler downscale_;
  Loss loss_;
  at::Tensor latents_;
  std::vector<at::Tensor> noises_;
  std::vector<at::Tensor> searched_, radii_;
  std::unique_ptr<torch_program::Optimizer> optimizer_;
  torch_program::LossScale loss_scale_;
  Status scaler_said_ = success();
  std::int64_t done_ = 0;
};

}  // namespace ullage::pulse
