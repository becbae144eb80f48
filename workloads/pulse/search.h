// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search of PULSE (arXiv 2003.03808), of one batch: latents v and noises such that the downscaled picture is the
// one wanted. A step: w = leaky_relu_0.2(v * deviation + mean); image = (G(w, noises) + 1) / 2; the loss of D(image)
// and w, summed over the batch; backward; the optimizer; then everything searched goes back to the radius it began
// with.
//
// Pictures of a batch do not see each other, and each is judged alone.

#include "pulse/downscaler.h"
#include "pulse/gaussian_fit.h"
#include "pulse/loss.h"
#include "pulse/networks.h"
#include "pulse/options.h"
#include "torch_program/optimizer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ullage::pulse {

struct Start {
  at::Tensor latents;              // (B, L, 512), tiled: (B, 1, 512)
  std::vector<at::Tensor> noises;  // L of (B, 1, R_i, R_i)
};

// N(0,1) for one picture from each seed, whatever the batch: latents, then the noises from the first up; layers that
// are zero draw nothing. Drawn in float32. torch.manual_seed and torch.randn in Python give the same on a CPU.
Start draw_start(const Options& options, std::int64_t layers, std::span<const std::uint64_t> seeds);

// Of the latents and noises before an update. Nothing is attached to a graph.
struct Evaluation {
  at::Tensor image;     // (B, 3, R, R), about 0..1
  at::Tensor low;       // D(image), (B, 3, s, s)
  LossFigures loss;     // (B) each
  at::Tensor distance;  // L2, (B)
};

class Search final {
 public:
  // `wanted` (B, 3, s, s) in 0..1. All are of one type; the start is changed. `synthesis` outlives this.
  Search(const Synthesis& synthesis, GaussianFit fit, const at::Tensor& wanted, Start start, const Options& options);

  Evaluation step();

  const at::Tensor& latents() const { return latents_; }
  const std::vector<at::Tensor>& noises() const { return noises_; }
  std::vector<std::size_t> trained_noises() const;  // those that are searched
  double learning_rate() const;                     // of the next step

 private:
  Evaluation evaluate();
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
  std::int64_t done_ = 0;
};

}  // namespace ullage::pulse
