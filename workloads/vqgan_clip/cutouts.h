// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cutouts of VQGAN-CLIP: pieces of one picture, each changed at random, that CLIP looks at. All random numbers are
// drawn first, as tensors with the names of tests/vqgan_clip/dump.py. They are float32, except chosen, squares and
// orders:
//   squares (N,3)                     size, left, top
//   <i>/chosen (N)                    of augmentation i: booleans or bytes
//   <i>/<figure>                      of augmentation i (figures.h)
//   strength (N,1,1,1), noise (N,3,side,side)
//
//   Latest, UpdatedPooling         the whole picture, pooled to (average + maximum) / 2, repeated N times
//   Original, Updated, NrUpdated   squares, resampled
//   all but Original               then augmented, and noise of a strength up to 0.1 is added
//   Original                       clamped to 0..1

#include "vqgan_clip/augment.h"

namespace ullage::vqgan_clip {

class Cutouts final {
 public:
  // `side` is CLIP's input size. `power`: the larger it is, the rarer are large squares. Only Latest and NrUpdated use
  // `augments`.
  Cutouts(std::int64_t side, std::int64_t count, CutMethod method, double power, const std::vector<Augment>& augments);

  // Draws for a picture of that size from torch's default CPU generator, in kornia's order.
  Draws draw(std::int64_t height, std::int64_t width) const;
  // Makes draws with the largest memory that a step can need: every augmentation changes every cutout, and every square
  // is as large as possible. Always returns the same draws and leaves the default generator alone.
  Draws draw_all(std::int64_t height, std::int64_t width) const;

  // Turns a picture (1,3,H,W) of 0..1 into cutouts (N,3,side,side) of its dtype. N is the number of cutouts that
  // `draws` has: all, or those of a part_of() them. The gradient goes to the picture. Draws of an augmentation that
  // chose no cutout may be missing.
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

// Returns views of the draws of cutouts first..first+count-1. Each cutout keeps its own draws, so it is the same in
// every part.
Draws part_of(const Draws& draws, std::int64_t first, std::int64_t count);

}  // namespace ullage::vqgan_clip
