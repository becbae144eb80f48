// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/colour.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <numbers>
#include <tuple>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

constexpr double kCircle = 2 * std::numbers::pi;

Tensor each(const Tensor& figures, const Tensor& pictures) {
  return figures.to(pictures.scalar_type()).view({-1, 1, 1, 1});
}

// Hue in radians 0..2 pi, saturation (max - min) / (max + 1e-6), value max, (N,1,H,W) each. If channels tie for the
// greatest, the first one counts.
struct Hsv {
  Tensor hue, saturation, value;
};

Hsv to_hsv(const Tensor& pictures) {
  const Tensor greatest = std::get<0>(pictures.max(1, /*keepdim=*/true));
  const Tensor least = std::get<0>(pictures.min(1, /*keepdim=*/true));
  const Tensor spread = greatest - least;
  const Tensor saturation = spread / (greatest + 1e-6);
  const Tensor divisor = at::where(spread == 0, 1, spread);
  const std::vector<Tensor> below = (greatest - pictures).split(1, 1);
  const Tensor &r = below[0], &g = below[1], &b = below[2];
  const Tensor is_greatest = pictures == greatest;
  const Tensor not_red = at::where(is_greatest.narrow(1, 1, 1), 2.0 * divisor + r - b, 4.0 * divisor + g - r);
  const Tensor sixths = at::where(is_greatest.narrow(1, 0, 1), b - g, not_red);
  return {at::remainder(sixths / divisor / 6.0, 1.0) * kCircle, saturation, greatest};
}

// Accepts a hue outside 0..2 pi.
Tensor to_rgb(const Hsv& hsv) {
  const Tensor &s = hsv.saturation, &v = hsv.value;
  const Tensor hue = hsv.hue / kCircle * 6;
  const Tensor sector = at::remainder(hue.floor(), 6);
  const Tensor f = at::remainder(hue, 6) - sector;
  const Tensor p = v * at::rsub(s, 1);
  const Tensor q = v * at::rsub(f * s, 1);
  const Tensor t = v * at::rsub(at::rsub(f, 1) * s, 1);
  const Tensor which = sector.to(at::kLong);
  const auto channel = [&which](const std::vector<Tensor>& by_sector) {
    return at::cat(by_sector, 1).gather(1, which);
  };
  return at::cat({channel({v, q, p, p, t, v}), channel({t, v, v, q, p, p}), channel({p, p, t, v, v, q})}, 1);
}

}  // namespace

Tensor change_brightness(const Tensor& pictures, const Tensor& factors) {
  return (pictures + each(factors - 1, pictures)).clamp(0, 1);
}

Tensor change_contrast(const Tensor& pictures, const Tensor& factors) {
  return (pictures * each(factors, pictures)).clamp(0, 1);
}

Tensor change_saturation(const Tensor& pictures, const Tensor& factors) {
  Hsv hsv = to_hsv(pictures);
  hsv.saturation = (hsv.saturation * each(factors, pictures)).clamp(0, 1);
  return to_rgb(hsv);
}

Tensor turn_hue(const Tensor& pictures, const Tensor& turns) {
  Hsv hsv = to_hsv(pictures);
  hsv.hue = at::fmod(hsv.hue + each(turns, pictures) * kCircle, kCircle);
  return to_rgb(hsv);
}

Tensor sharpen(const Tensor& pictures, const Tensor& factors) {
  static constexpr std::int64_t kRim[] = {1, 1, 1, 1};
  const Tensor kernel = at::tensor({1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0, 1.0, 1.0}, pictures.options()) / 13;
  const Tensor window = kernel.view({3, 3}).expand({3, 1, 3, 3});
  const Tensor inside = at::conv2d(pictures, window, {}, 1, at::IntArrayRef(0), 1, /*groups=*/3).clamp(0, 1);
  const Tensor rim = at::constant_pad_nd(at::zeros(inside.sizes().slice(2), at::kBool), kRim, true);
  const Tensor blurred = at::where(rim, pictures, at::constant_pad_nd(inside, kRim));
  return blurred + (pictures - blurred) * each(factors, pictures);
}

}  // namespace ullage::vqgan_clip
