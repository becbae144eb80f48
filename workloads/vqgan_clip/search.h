// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search of VQGAN-CLIP: finds tokens z whose picture, to CLIP, fits the prompts. A step decodes z, makes cutouts,
// computes CLIP's vectors of them, and sums the losses of the prompts. --init-weight adds a loss that pulls z towards
// 0. Then the step runs the backward pass and the optimizer, and clamps z to the bounds of the codebook. Steps count
// from 0.

#include "torch_program/optimizer.h"
#include "torch_program/precision.h"
#include "vqgan_clip/clip.h"
#include "vqgan_clip/cutouts.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/prompt_loss.h"
#include "vqgan_clip/vqgan.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ullage::vqgan_clip {

// Returns z of random rows of the codebook (K,C), from torch's generator, token after token: (1,C,height,width).
at::Tensor random_tokens(const at::Tensor& codebook, std::int64_t height, std::int64_t width);

// The result for z before an update. No tensor has an autograd graph.
struct Evaluation {
  at::Tensor picture;   // (1,3,H,W), 0..1
  at::Tensor features;  // (N,D): CLIP's vector, of length D, of each of the N cutouts
  at::Tensor losses;    // the init weight's loss if there is one, then each prompt's
};

class Search final {
 public:
  // All tensors have one dtype. The networks, cutouts and options must outlive this object. The search changes z.
  Search(const Decoder& decoder, const ImageTower& tower, const Cutouts& cutouts, at::Tensor z, const Options& options);

  // Sets the prompts from now on. At least one is needed.
  void set_prompts(std::vector<PromptLoss> prompts) { prompts_ = std::move(prompts); }
  // Continues from another z with a new optimizer. The count of steps continues.
  void restart(at::Tensor z);

  // `draws` must be for this picture's size.
  Evaluation step(const Draws& draws);

  const at::Tensor& z() const { return z_; }
  std::int64_t done() const { return done_; }
  // In fp16, what the scaler said of the last step: see GradScaler::update().
  const Status& scaler_said() const { return scaler_said_; }

 private:
  struct Seen {
    at::Tensor features, losses;  // detached
  };
  Evaluation evaluate(const Draws& draws);
  // Both compute losses and run the backward pass. look() runs it to everything that `picture` was made from, with
  // losses times `share`. look_in_parts() takes a few cutouts at a time to save memory. For each such part it runs the
  // backward pass to `picture` alone. Then it runs the decoder's backward pass once, with the sum.
  Seen look(const at::Tensor& picture, const Draws& draws, double share);
  Seen look_in_parts(const at::Tensor& picture, const Draws& draws);
  at::Tensor hold_near_zero();

  const Decoder& decoder_;
  const ImageTower& tower_;
  const Cutouts& cutouts_;
  const Options& options_;
  std::vector<PromptLoss> prompts_;
  at::Tensor z_;
  std::unique_ptr<torch_program::Optimizer> optimizer_;
  torch_program::LossScale loss_scale_;
  Status scaler_said_ = success();
  std::int64_t done_ = 0;
};

}  // namespace ullage::vqgan_clip
