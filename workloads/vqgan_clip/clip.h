// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two towers of a CLIP with a vision transformer (arXiv 2103.00020), frozen, with the keys of the published files.
// Pictures and texts become vectors of one space. Each tower is loaded by itself: texts are needed once, pictures
// always.

#include "torch_program/source.h"
#include "vqgan_clip/clip_file.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace ullage::vqgan_clip {

// Pictures (N,3,R,R) of 0..1, R the resolution it was made for, to vectors (N,D).
class ImageTower final {
 public:
  ImageTower(const ClipShape& shape, const torch_program::Source& source);
  ~ImageTower();
  ImageTower(const ImageTower&) = delete;
  ImageTower& operator=(const ImageTower&) = delete;

  at::Tensor operator()(const at::Tensor& pictures) const;

  const ClipShape& shape() const { return shape_; }

 private:
  struct Layers;
  ClipShape shape_;
  std::unique_ptr<const Layers> layers_;
};

// Tokens of texts (N,L), L the context it was made for, of Tokeniser::tokens(), to vectors (N,D). No gradient follows.
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
