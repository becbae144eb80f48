// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cutouts of VQGAN-CLIP: pieces of one picture, each changed by chance, that CLIP looks at. Everything random is
// drawn first, tensors by name as tests/vqgan_clip/dump.py names them: squares (N,3) of size, left, top;
// <i>/chosen (N; truth values, or bytes) and <i>/<figure> (figures.h) of augmentation i; strength (N,1,1,1); noise
// (N,3,side,side). What is drawn is float32 but chosen, squares and orders.
//
//   Latest, UpdatedPooling         the whole picture, (average + maximum) / 2 of its windows, N times the same
//   Original, Updated, NrUpdated   squares, resampled
//   all but Original               then augmented, and noise is added of a strength up to 0.1; Original is clamped to
//   0..1

#include "vqgan_clip/augment.h"

namespace ullage::vqgan_clip {

class Cutouts final {
 public:
  // `side`: what CLIP takes. `power`: of squares, large ones are rare where it is large. `augments` count with Latest
  // and NrUpdated alone.
  Cutouts(std::int64_t side, std::int64_t count, CutMethod method, double power, const std::vector<Augment>& augments);

  // For a picture of that size, from torch's default generator of the CPU, in kornia's order.
  Draws draw(std::int64_t height, std::int64_t width) const;
  // Every picture chosen by every augmentation and every square as large as can be: the most a step can hold. Always
  // the same; the default generator is left alone.
  Draws draw_all(std::int64_t height, std::int64_t width) const;

  // A picture (1,3,H,W) of 0..1 to cutouts (N,3,side,side) of its dtype, N being that of the draws, whole or a part.
  // Tensors that would be empty may be missing. The gradient goes to the picture.
  at::Tensor apply(const at::Tensor& picture, const Draws& draws) const;

  std::int64_t count() const { return count_; }
  std::int64_t side() const { return side_; }

 private:
  bool pools() const { return method_ == CutMethod::Latest || method_ == CutMethod::UpdatedPooling; }
  at::Tensor draw_squares(const at::Generator& generator, std::int64_t height, std::int64_t width) const;
  void draw_strength_and_noise(const at::Generator& generator, Draws& draws) const;
  at::Tensor cut(const at::Tensor& picture, const Draws& draws) const;

  std::int64_t side_;
  std::int64_t count_;
  CutMethod method_;
  double power_;
  std::vector<Augmentation> augmentations_;
};

// The draws of cutouts first..first+count-1 alone, views of the whole: each cutout sees what it saw, and so is the same
// whichever part it is in.
Draws part_of(const Draws& draws, std::int64_t first, std::int64_t count);

}  // namespace ullage::vqgan_clip
