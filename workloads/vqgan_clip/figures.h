// SPDX-License-Identifier: Apache-2.0
#pragma once

// What augmentations draw, tensors by name, as kornia 0.5.4 draws it: in float32, in its order, the same bits from the
// same generator. What kornia draws and does not use is drawn all the same.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ullage::vqgan_clip {

using Draws = std::map<std::string, at::Tensor>;

// The tensor of that name, which must be there.
const at::Tensor& figure(const Draws& draws, const std::string& name);

// What is drawn for: so many square pictures. May be none, for which some draw nevertheless.
struct Drawing {
  at::Generator generator;  // of the CPU
  std::int64_t count = 0;
  std::int64_t side = 0;
};

// low + rand * (high - low), all of it in float32.
at::Tensor uniform(const at::Generator& generator, at::IntArrayRef shape, double low, double high);

Draws draw_angle(const Drawing& drawing, double most);  // angle (n), degrees
// angle (n); shift (n,2), pixels; shear (n,2), degrees, if there is a most. A shift of 0.1 is a range 0..0.1 to kornia:
// none to the side, +-0.1 of the side down.
Draws draw_affine(const Drawing& drawing, double most_angle, std::optional<double> most_shear);
// corners (n,4,2), pixels: from those of the picture to somewhere within distortion / 2 of the side towards the middle.
Draws draw_corners(const Drawing& drawing, double distortion);
// brightness, contrast, hue, saturation (n): around 1, hue around 0. order (4): in which all pictures are changed.
Draws draw_jitter(const Drawing& drawing, double light, double saturation, double hue);
// One box (n,4) for all of left, top, width, height: .1 to .4 of the area, height to width .3 to 1/.3.
Draws draw_box_to_erase(const Drawing& drawing);
Draws draw_factor(const Drawing& drawing, double most);  // factor (n), 0..most
Draws draw_noise(const Drawing& drawing);                // noise (n,3,side,side), normal
Draws draw_elastic(const Drawing& drawing);              // noise (n,2,side,side), -1..1
Draws draw_points(const Drawing& drawing);      // points (n,5,2): the anchors of bend_spline, moved by up to .8
Draws draw_whole_crop(const Drawing& drawing);  // nothing: a crop as large as the picture lies at 0,0
// box (n,4) of left, top, width, height: the first of ten that lies inside, else one of the whole width.
Draws draw_box_to_enlarge(const Drawing& drawing);

}  // namespace ullage::vqgan_clip
