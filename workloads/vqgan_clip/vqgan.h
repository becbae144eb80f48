// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two halves of a VQGAN (arXiv 2012.09841), frozen, with the keys of the published checkpoints. A picture of H x W
// is tokens of f x f pixels, f = 2^(levels-1), each a row of the codebook.
//
//   picture -> encoder -> quant_conv -> codes              z -> nearest codes -> post_quant_conv -> decoder -> picture
//
// Both halves: 3x3 convolution, levels of residual blocks, a middle with attention. Attention stands where the config's
// resolution says, so it runs on tokens, whatever the size of the picture.

#include "torch_program/source.h"
#include "vqgan_clip/model_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace ullage::vqgan_clip {

// How much is done at a time; 0: all at once. Other orders of adding round otherwise.
struct Slices {
  std::int64_t codes = 0;      // tokens of which the nearest codes are looked for together
  std::int64_t attention = 0;  // tokens that attend together
};

// The rows of the codebook (K,C) nearest to each token of z (B,C,h,w), the first of equals: (B,h,w), indices.
at::Tensor nearest(const at::Tensor& z, const at::Tensor& codebook, std::int64_t rows_at_once = 0);

// Tokens to pictures.
class Decoder final {
 public:
  Decoder(const ModelConfig& config, const torch_program::Source& source, const Slices& slices = {});
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // z (1,C,h,w) to the picture (1,3,f h,f w) of 0..1 that its nearest codes are. The gradient reaches z straight
  // through them, and the picture's bounds hold it back (straight_through.h).
  at::Tensor operator()(const at::Tensor& z) const;

  const at::Tensor& codebook() const { return codebook_; }  // (K,C)
  // Of each channel of the codebook, (1,C,1,1).
  const at::Tensor& least() const { return least_; }
  const at::Tensor& greatest() const { return greatest_; }

 private:
  struct Layers;
  Slices slices_;
  at::Tensor codebook_, least_, greatest_;
  std::unique_ptr<const Layers> layers_;
};

// Pictures to tokens.
class Encoder final {
 public:
  Encoder(const ModelConfig& config, const torch_program::Source& source, const Slices& slices = {});
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // A picture (1,3,H,W) of 0..1, H and W multiples of f, to z (1,C,H/f,W/f), contiguous: rows of `codebook`. Gumbel's
  // adds noise to its scores, drawn from torch's generator, in use as in training.
  at::Tensor operator()(const at::Tensor& picture, const at::Tensor& codebook) const;

 private:
  struct Layers;
  Slices slices_;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace ullage::vqgan_clip
