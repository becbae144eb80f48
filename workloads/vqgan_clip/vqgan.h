// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two halves of a VQGAN (arXiv 2012.09841), frozen, with the keys of the published checkpoints. A picture of H x W
// is made of tokens of f x f pixels, f = 2^(levels-1); each is a row of the codebook.
//
//   picture -> encoder -> quant_conv -> codes              z -> nearest codes -> post_quant_conv -> decoder -> picture
//
// Each half has a 3x3 convolution, levels of residual blocks, and a middle with attention. The config's resolution
// decides which levels have attention, so the size of the picture does not matter.

#include "program/precision.h"
#include "torch_program/source.h"
#include "vqgan_clip/model_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace ullage::vqgan_clip {

// How many tokens are processed at a time; 0: all at once. Slices add in another order, so they round differently.
struct Slices {
  std::int64_t codes = 0;      // tokens whose nearest codes are searched together
  std::int64_t attention = 0;  // queries computed together
};

// Returns the index of the codebook row (K,C) nearest to each token of z (B,C,h,w): (B,h,w). Of equals, the first
// counts.
at::Tensor nearest(const at::Tensor& z, const at::Tensor& codebook, std::int64_t rows_at_once = 0);

// Maps tokens to pictures.
class Decoder final {
 public:
  // `precision`: of the layers; the nearest codes are found in the type of z.
  Decoder(const ModelConfig& config, const torch_program::Source& source, const Slices& slices = {},
          program::Precision precision = program::Precision::Fp32);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Maps z (1,C,h,w) to the picture (1,3,f h,f w) of 0..1 of its nearest codes. The gradient passes straight through
  // the codes to z; where the picture is clamped, it is held back (straight_through.h).
  at::Tensor operator()(const at::Tensor& z) const;

  const at::Tensor& codebook() const { return codebook_; }  // (K,C)
  // The least and greatest value of each channel of the codebook, (1,C,1,1).
  const at::Tensor& least() const { return least_; }
  const at::Tensor& greatest() const { return greatest_; }

 private:
  struct Layers;
  Slices slices_;
  program::Precision precision_;
  at::Tensor codebook_, least_, greatest_;
  std::unique_ptr<const Layers> layers_;
};

// Maps pictures to tokens.
class Encoder final {
 public:
  Encoder(const ModelConfig& config, const torch_program::Source& source, const Slices& slices = {});
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Maps a picture (1,3,H,W) of 0..1 to z (1,C,H/f,W/f), contiguous: rows of `codebook`. H and W are multiples of f. A
  // Gumbel encoder adds noise from torch's generator to its scores, not only in training.
  at::Tensor operator()(const at::Tensor& picture, const at::Tensor& codebook) const;

 private:
  struct Layers;
  Slices slices_;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace ullage::vqgan_clip
