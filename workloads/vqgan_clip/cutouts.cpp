// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/cutouts.h"

#include "ullage/base/check.h"
#include "vqgan_clip/straight_through.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

std::string prefix_of(std::size_t augmentation) { return std::to_string(augmentation) + "/"; }

// Returns the draws whose names begin with `prefix`, without it.
Draws under(const Draws& draws, const std::string& prefix) {
  Draws found;
  for (const auto& [name, tensor] : draws) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

void put_under(Draws& draws, const std::string& prefix, const Draws& added) {
  for (const auto& [name, tensor] : added) draws[prefix + name] = tensor;
}

// Returns a tensor with one row per cutout.
const Tensor& rows_of(const Draws& draws) {
  const auto strength = draws.find("strength");
  return strength != draws.end() ? strength->second : figure(draws, "squares");
}

// Returns how many of the cutouts first..first+count-1 an augmentation chose.
std::int64_t chosen_among(const Tensor& chosen, std::int64_t first, std::int64_t count) {
  return chosen.narrow(0, first, count).sum().item<std::int64_t>();
}

// Returns the taps of a filter for scaling by `ratio` < 1, with sum 1. Tap i's argument is `ratio` added i times in
// double, as in the original.
Tensor lanczos2(double ratio) {
  std::vector<double> steps = {0};
  const auto count = static_cast<std::size_t>(std::ceil(2 / ratio + 1)) - 1;
  while (steps.size() < count) steps.push_back(steps.back() + ratio);
  const Tensor half = at::tensor(steps, at::kFloat);
  const Tensor x = at::cat({-half.narrow(0, 1, half.size(0) - 1).flip(0), half});
  const Tensor taps = at::where((x > -2) & (x < 2), at::sinc(x) * at::sinc(x / 2), 0);
  return taps / taps.sum();
}

// Maps (N,C,H,W) to (N,C,side,side) as VQGAN-CLIP does for its square cutouts. A Lanczos filter comes first, along each
// axis that shrinks (reflected at the rim), then bicubic with aligned corners. Half the filter, about 2 * H / side
// pixels, must be less than H; for squares it is.
Tensor resample(const Tensor& pictures, std::int64_t side) {
  Tensor flat = pictures.reshape({-1, 1, pictures.size(2), pictures.size(3)});
  for (const std::int64_t axis : {2, 3}) {
    const std::int64_t size = pictures.size(axis);
    if (side >= size) continue;
    const Tensor taps = lanczos2(static_cast<double>(side) / static_cast<double>(size)).to(flat.scalar_type());
    const std::int64_t rim = taps.size(0) / 2;
    const bool down = axis == 2;
    flat = at::reflection_pad2d(flat, down ? at::IntArrayRef{0, 0, rim, rim} : at::IntArrayRef{rim, rim, 0, 0});
    flat = at::conv2d(flat, down ? taps.view({1, 1, -1, 1}) : taps.view({1, 1, 1, -1}));
  }
  return at::upsample_bicubic2d(flat.view(pictures.sizes()), {side, side}, /*align_corners=*/true);
}

}  // namespace

Cutouts::Cutouts(std::int64_t side, std::int64_t count, CutMethod method, double power,
                 const std::vector<Augment>& augments)
    : side_(side), count_(count), method_(method), power_(power), augmentations_(augmentations_of(method, augments)) {}

Tensor Cutouts::draw_squares(const at::Generator& generator, std::int64_t height, std::int64_t width) const {
  const std::int64_t greatest = std::min(height, width);
  const std::int64_t least = std::min(greatest, side_);
  std::vector<std::int64_t> squares;
  for (std::int64_t i = 0; i < count_; ++i) {
    const Tensor size = at::rand({}, generator, at::kFloat).pow(power_) * (greatest - least) + least;
    squares.push_back(static_cast<std::int64_t>(size.item<float>()));
    const std::int64_t taken = squares.back();
    for (const std::int64_t room : {width, height}) {
      squares.push_back(at::randint(0, room - taken + 1, {}, generator, at::kLong).item<std::int64_t>());
    }
  }
  return at::tensor(squares, at::kLong).view({-1, 3});
}

void Cutouts::draw_strength_and_noise(const at::Generator& generator, Draws& draws) const {
  draws["strength"] = at::empty({count_, 1, 1, 1}, at::kFloat).uniform_(0, 0.1, generator);
  draws["noise"] = at::randn({count_, 3, side_, side_}, generator, at::kFloat);
}

Draws Cutouts::draw(std::int64_t height, std::int64_t width) const {
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  Draws draws;
  if (!pools()) draws["squares"] = draw_squares(generator, height, width);
  for (std::size_t i = 0; i < augmentations_.size(); ++i) {
    put_under(draws, prefix_of(i), augmentations_[i].draw({generator, count_, side_}));
  }
  if (method_ != CutMethod::Original) draw_strength_and_noise(generator, draws);
  return draws;
}

Draws Cutouts::draw_all(std::int64_t height, std::int64_t width) const {
  const at::Generator generator = at::detail::createCPUGenerator(0);
  Draws draws;
  if (!pools()) draws["squares"] = at::tensor({std::min(height, width), 0L, 0L}, at::kLong).repeat({count_, 1});
  for (std::size_t i = 0; i < augmentations_.size(); ++i) {
    put_under(draws, prefix_of(i), augmentations_[i].draw_all({generator, count_, side_}));
  }
  if (method_ != CutMethod::Original) draw_strength_and_noise(generator, draws);
  return draws;
}

Tensor Cutouts::cut(const Tensor& picture, const Draws& draws) const {
  if (pools()) {
    const Tensor average = at::adaptive_avg_pool2d(picture, {side_, side_});
    const Tensor maximum = std::get<0>(at::adaptive_max_pool2d(picture, {side_, side_}));
    return ((average + maximum) / 2).expand({rows_of(draws).size(0), -1, -1, -1});
  }
  const Tensor& squares = figure(draws, "squares");
  std::vector<Tensor> cuts;
  for (std::int64_t i = 0; i < squares.size(0); ++i) {
    const auto column = [&squares, i](std::int64_t j) { return squares[i][j].item<std::int64_t>(); };
    const std::int64_t size = column(0);
    cuts.push_back(resample(picture.narrow(3, column(1), size).narrow(2, column(2), size), side_));
  }
  return at::cat(cuts);
}

Tensor Cutouts::apply(const Tensor& picture, const Draws& draws) const {
  Tensor cuts = cut(picture, draws);
  for (std::size_t i = 0; i < augmentations_.size(); ++i) {
    cuts = augmentations_[i].apply(cuts, under(draws, prefix_of(i)));
  }
  if (method_ == CutMethod::Original) return clamp_with_grad(cuts, 0, 1);
  return cuts + figure(draws, "strength").to(cuts.scalar_type()) * figure(draws, "noise").to(cuts.scalar_type());
}

Draws part_of(const Draws& draws, std::int64_t first, std::int64_t count) {
  Draws part;
  for (const auto& [name, tensor] : draws) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.ends_with("/chosen")) {
      part[name] = tensor.narrow(0, first, count);
    } else if (name.ends_with("/order")) {
      part[name] = tensor;
    } else {
      const Tensor& chosen = figure(draws, name.substr(0, slash) + "/chosen");
      part[name] = tensor.narrow(0, chosen_among(chosen, 0, first), chosen_among(chosen, first, count));
    }
  }
  return part;
}

}  // namespace ullage::vqgan_clip
