// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search of VQGAN-CLIP: tokens z whose picture CLIP takes for the prompts. A step: the picture of z, its cutouts,
// CLIP's vectors of them, the sum of the prompts' losses and that of the init weight; backward; the optimizer; z back
// between the bounds of the codebook. Steps count from 0.

#include "torch_program/optimizer.h"
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

// z of random rows of the codebook (K,C), from torch's generator, token after token: (1,C,height,width).
at::Tensor random_tokens(const at::Tensor& codebook, std::int64_t height, std::int64_t width);

// Of z before an update. Nothing is attached to a graph.
struct Evaluation {
  at::Tensor picture;   // (1,3,H,W), 0..1
  at::Tensor features;  // (N,D)
  at::Tensor losses;    // that of the init weight if there is one, then of each prompt
};

class Search final {
 public:
  // All are of one type; the networks and cutouts outlive this, z is changed.
  Search(const Decoder& decoder, const ImageTower& tower, const Cutouts& cutouts, at::Tensor z, const Options& options);

  // What the picture is to become from now on; one at least.
  void set_prompts(std::vector<PromptLoss> prompts) { prompts_ = std::move(prompts); }
  // Goes on from another z with a new optimizer; steps go on counting.
  void restart(at::Tensor z);

  // `draws` are of this picture's size.
  Evaluation step(const Draws& draws);

  const at::Tensor& z() const { return z_; }
  std::int64_t done() const { return done_; }

 private:
  struct Seen {
    at::Tensor features, losses;  // detached
  };
  Evaluation evaluate(const Draws& draws);
  // Both go backward too, the first to `picture` and what it was made of.
  Seen look(const at::Tensor& picture, const Draws& draws, double share) const;
  Seen look_in_parts(const at::Tensor& picture, const Draws& draws) const;
  at::Tensor hold_near_zero() const;

  const Decoder& decoder_;
  const ImageTower& tower_;
  const Cutouts& cutouts_;
  const Options& options_;
  std::vector<PromptLoss> prompts_;
  at::Tensor z_;
  std::unique_ptr<torch_program::Optimizer> optimizer_;
  std::int64_t done_ = 0;
};

}  // namespace ullage::vqgan_clip
