// SPDX-License-Identifier: Apache-2.0
#pragma once

// The random numbers of augmentations, as tensors by name. They are drawn as kornia 0.5.4 draws them: in float32, in
// its order, with the same bits from the same generator. Numbers that kornia draws but does not use are drawn too.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ullage::vqgan_clip {

using Draws = std::map<std::string, at::Tensor>;

// Returns the tensor called `name`; ContractError if there is none.
const at::Tensor& figure(const Draws& draws, const std::string& name);

// The pictures to draw figures for: `count` square ones. Some functions draw numbers even if `count` is 0.
struct Drawing {
  at::Generator generator;  // a CPU generator
  std::int64_t count = 0;
  std::int64_t side = 0;
};

// low + rand * (high - low), all of it in float32.
at::Tensor uniform(const at::Generator& generator, at::IntArrayRef shape, double low, double high);

Draws draw_angle(const Drawing& drawing, double most);  // angle (n), degrees in +-most
// angle (n), degrees; shift (n,2), pixels; shear (n,2), degrees, if most_shear is given. kornia makes the pair (0, 0.1)
// of a shift of 0.1. It takes the first for the most sideways and the second for the most vertically. So the shift
// sideways is 0, and vertically it is within +-0.1 of the side.
Draws draw_affine(const Drawing& drawing, double most_angle, std::optional<double> most_shear);
// corners (n,4,2), pixels: the picture's corners, moved towards the middle by up to distortion / 2 of the side.
Draws draw_corners(const Drawing& drawing, double distortion);
// brightness and contrast (n), 1 +- light; saturation (n), 1 +- saturation; hue (n), +- hue. order (4): the order of
// the four changes, the same for all pictures.
Draws draw_jitter(const Drawing& drawing, double light, double saturation, double hue);
// box (n,4) of left, top, width, height, the same for all pictures: 0.1 to 0.4 of the area, height / width 0.3 to
// 1/0.3.
Draws draw_box_to_erase(const Drawing& drawing);
Draws draw_factor(const Drawing& drawing, double most);  // factor (n), 0..most
Draws draw_noise(const Drawing& drawing);                // noise (n,3,side,side), normal
Draws draw_elastic(const Drawing& drawing);              // noise (n,2,side,side), -1..1
// points (n,5,2): spline_anchors(), each coordinate moved by up to 0.8; a picture reaches from -1 to 1.
Draws draw_points(const Drawing& drawing);
// Draws as kornia does, but returns no figure: a crop of the whole picture is at 0,0.
Draws draw_whole_crop(const Drawing& drawing);
// box (n,4) of left, top, width, height. For each picture ten candidates are drawn; the box is the first that is both
// narrower and lower than the picture. If none is, the box has the whole width and 0.75 of the height.
Draws draw_box_to_enlarge(const Drawing& drawing);

}  // namespace ullage::vqgan_clip
