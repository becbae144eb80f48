// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/figures.h"

#include "ullage/base/check.h"
#include "vqgan_clip/bend.h"

#include <ATen/ATen.h>

#include <utility>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

// One number per picture, from low to high.
Tensor of_each(const Drawing& drawing, double low, double high) {
  return uniform(drawing.generator, {drawing.count}, low, high);
}

Tensor around(const Drawing& drawing, float middle, double most) {
  const auto spread = static_cast<float>(most);
  return of_each(drawing, middle - spread, middle + spread);
}

// Whole numbers from 0 to `rooms` - 1.
Tensor place(const Drawing& drawing, const Tensor& rooms) {
  return (at::rand(rooms.sizes(), drawing.generator, at::kFloat) * rooms).floor();
}

}  // namespace

const Tensor& figure(const Draws& draws, const std::string& name) {
  const auto found = draws.find(name);
  ULLAGE_CHECK(found != draws.end(), ("there are draws of " + name).c_str());
  return found->second;
}

Tensor uniform(const at::Generator& generator, at::IntArrayRef shape, double low, double high) {
  const auto first = static_cast<float>(low);
  return at::rand(shape, generator, at::kFloat) * (static_cast<float>(high) - first) + first;
}

Draws draw_angle(const Drawing& drawing, double most) { return {{"angle", of_each(drawing, -most, most)}}; }

Draws draw_affine(const Drawing& drawing, double most_angle, std::optional<double> most_shear) {
  const double down = 0.1F * static_cast<float>(drawing.side);
  Draws drawn = draw_angle(drawing, most_angle);
  const Tensor aside = of_each(drawing, 0, 0);
  drawn["shift"] = at::stack({aside, of_each(drawing, -down, down)}, 1);
  if (most_shear) {
    const Tensor along = of_each(drawing, -*most_shear, *most_shear);
    drawn["shear"] = at::stack({along, of_each(drawing, 0, 0)}, 1);
  }
  return drawn;
}

Draws draw_corners(const Drawing& drawing, double distortion) {
  const auto last = static_cast<double>(drawing.side - 1);
  const Tensor start = at::tensor({0.0, 0.0, last, 0.0, last, last, 0.0, last}, at::kFloat).view({4, 2});
  const Tensor inward = at::tensor({1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0}, at::kFloat).view({4, 2});
  const float most = static_cast<float>(distortion) * static_cast<float>(drawing.side) / 2;
  const Tensor away = uniform(drawing.generator, {drawing.count, 4, 2}, 0, 1) * most;
  return {{"corners", start + away * inward}};
}

Draws draw_jitter(const Drawing& drawing, double light, double saturation, double hue) {
  Draws drawn;
  drawn["brightness"] = around(drawing, 1, light);
  drawn["contrast"] = around(drawing, 1, light);
  drawn["hue"] = around(drawing, 0, hue);
  drawn["saturation"] = around(drawing, 1, saturation);
  drawn["order"] = at::randperm(4, drawing.generator, at::kLong);
  return drawn;
}

Draws draw_box_to_erase(const Drawing& drawing) {
  const auto one = [&drawing](double low, double high) { return uniform(drawing.generator, {1}, low, high); };
  const Tensor area = one(0.1, 0.4) * (drawing.side * drawing.side);
  const Tensor flat = one(0.3, 1);
  const Tensor tall = one(1, 1 / 0.3);
  const Tensor ratio = at::where(one(0, 1).round().to(at::kBool), flat, tall);
  const Tensor high = (area * ratio).sqrt().round().clamp(1, drawing.side);
  const Tensor wide = (area / ratio).sqrt().round().clamp(1, drawing.side);
  const Tensor left = place(drawing, drawing.side - wide + 1);
  const Tensor top = place(drawing, drawing.side - high + 1);
  return {{"box", at::stack({left, top, wide, high}, 1).repeat({drawing.count, 1})}};
}

Draws draw_factor(const Drawing& drawing, double most) { return {{"factor", of_each(drawing, 0, most)}}; }

Draws draw_noise(const Drawing& drawing) {
  const std::int64_t side = drawing.side;
  return {{"noise", at::randn({drawing.count, 3, side, side}, drawing.generator, at::kFloat)}};
}

Draws draw_elastic(const Drawing& drawing) {
  const std::int64_t side = drawing.side;
  return {{"noise", at::rand({drawing.count, 2, side, side}, drawing.generator, at::kFloat) * 2 - 1}};
}

Draws draw_points(const Drawing& drawing) {
  return {{"points", spline_anchors(at::kFloat) + uniform(drawing.generator, {drawing.count, 5, 2}, -0.8, 0.8)}};
}

Draws draw_whole_crop(const Drawing& drawing) {
  for (int i = 0; i < 2; ++i) of_each(drawing, 0, 1);
  return {};
}

Draws draw_box_to_enlarge(const Drawing& drawing) {
  const std::int64_t n = drawing.count;
  const auto side = static_cast<float>(drawing.side);
  const Tensor least = at::tensor(0.75, at::kFloat);
  const Tensor most = at::tensor(1.333, at::kFloat);
  const Tensor area = uniform(drawing.generator, {n, 10}, 0.1F * side * side, side * side);
  const Tensor ratio =
      (least.log() + at::rand({n, 10}, drawing.generator, at::kFloat) * (most.log() - least.log())).exp();
  const Tensor first = (area * ratio).sqrt().round();
  const Tensor second = (area / ratio).sqrt().round();
  const Tensor fits = (first > 0) & (first < side) & (second > 0) & (second < side);
  const Tensor chosen = fits.to(at::kInt).argmax(1, /*keepdim=*/true);
  const Tensor any = fits.any(1);
  const Tensor high = at::where(any, first.gather(1, chosen).squeeze(1), (least * side).round());
  const Tensor wide = at::where(any, second.gather(1, chosen).squeeze(1), side);
  const Tensor left = place(drawing, (side - wide + 1).clamp_min(0));
  const Tensor top = place(drawing, (side - high + 1).clamp_min(0));
  return {{"box", at::stack({left, top, wide, high}, 1)}};
}

}  // namespace ullage::vqgan_clip
