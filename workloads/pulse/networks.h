// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two frozen networks of PULSE, StyleGAN's mapping and synthesis (arXiv 1812.04948), with the keys of the published
// files. Their weights are equalised: stored as drawn, and multiplied by gain * fan_in^-1/2 at every use. Here they are
// constants, so loading computes that product once, and the windows of the fused convolutions too. After that nothing
// of the file is held.
//
//   w, noises -> 4x4 -> 8x8 -> ... -> RxR -> 1x1 convolution -> picture of about -1..1
//                 each: convolution, epilogue, convolution, epilogue (noise, leaky ReLU, instance norm, style)

#include "pulse/network_files.h"
#include "torch_program/source.h"

#include <memory>
#include <span>
#include <vector>

namespace ullage::pulse {

// Maps latents (N, 512) to latents (N, 512).
class Mapping final {
 public:
  explicit Mapping(const torch_program::Source& source);
  at::Tensor operator()(const at::Tensor& z) const;

 private:
  struct Layer {
    at::Tensor weight, bias;
  };
  std::vector<Layer> layers_;
};

// Maps styles w (B, L, 512) and L noises (B, 1, R_i, R_i), R_i = 4 * 2^floor(i/2), to pictures (B, 3, R, R).
class Synthesis final {
 public:
  Synthesis(const SynthesisShape& shape, const torch_program::Source& source);
  ~Synthesis();
  Synthesis(const Synthesis&) = delete;
  Synthesis& operator=(const Synthesis&) = delete;

  at::Tensor operator()(const at::Tensor& w, std::span<const at::Tensor> noises) const;

  std::int64_t resolution() const { return shape_.resolution; }
  std::int64_t layers() const { return shape_.layers(); }

 private:
  struct Layers;
  SynthesisShape shape_;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace ullage::pulse
