// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two towers of a CLIP with a vision transformer (arXiv 2103.00020), frozen, with the keys of the published files.
// They map pictures and texts to vectors of one space. Each is loaded by itself, because texts are needed only at the
// start.

#include "program/precision.h"
#include "torch_program/source.h"
#include "vqgan_clip/clip_file.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace ullage::vqgan_clip {

// Maps pictures (N,3,R,R) of 0..1, where R is shape().resolution, to vectors (N,D).
class ImageTower final {
 public:
  ImageTower(const ClipShape& shape, const torch_program::Source& source,
             program::Precision precision = program::Precision::Fp32);
  ~ImageTower();
  ImageTower(const ImageTower&) = delete;
  ImageTower& operator=(const ImageTower&) = delete;

  at::Tensor operator()(const at::Tensor& pictures) const;

  const ClipShape& shape() const { return shape_; }

 private:
  struct Layers;
  ClipShape shape_;
  program::Precision precision_;
  std::unique_ptr<const Layers> layers_;
};

// Maps tokens (N,L) from Tokeniser::tokens(), where L is the shape's context, to vectors (N,D) without a gradient.
class TextTower final {
 public:
  TextTower(const ClipShape& shape, const torch_program::Source& source);
  ~TextTower();
  TextTower(const TextTower&) = delete;
  TextTower& operator=(const TextTower&) = delete;

  at::Tensor operator()(const at::Tensor& tokens) const;

 private:
  struct Layers;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace ullage::vqgan_clip
