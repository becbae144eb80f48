// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/augment.h"

#include "ullage/base/check.h"
#include "vqgan_clip/bend.h"
#include "vqgan_clip/colour.h"
#include "vqgan_clip/warp.h"

#include <ATen/ATen.h>

#include <array>
#include <optional>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

Tensor as_in(const Tensor& pictures, const Tensor& figures) { return figures.to(pictures.scalar_type()); }

// Rotates, shifts and shears about the middle.
Augmentation affine(double probability, double degrees, std::optional<double> shear, Outside outside) {
  const auto figures = [=](const Drawing& drawing) { return draw_affine(drawing, degrees, shear); };
  const auto change = [=](const Tensor& pictures, const Draws& drawn) {
    const double middle = middle_of(pictures.size(2));
    Tensor matrices = rotation_matrices(-as_in(pictures, figure(drawn, "angle")), middle);
    matrices.narrow(1, 0, 2).select(2, 2).add_(as_in(pictures, figure(drawn, "shift")));
    if (shear) {
      const Tensor degrees_of = as_in(pictures, figure(drawn, "shear"));
      matrices = at::matmul(matrices, shear_matrices(degrees_of.select(1, 0), degrees_of.select(1, 1), middle));
    }
    return warp_affine(pictures, matrices, outside, /*align_corners=*/false);
  };
  return {probability, figures, change};
}

Augmentation perspective(double probability, double distortion) {
  const auto figures = [=](const Drawing& drawing) { return draw_corners(drawing, distortion); };
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    const auto last = static_cast<double>(pictures.size(2) - 1);
    const Tensor start = at::tensor({0.0, 0.0, last, 0.0, last, last, 0.0, last}, pictures.options()).view({1, 4, 2});
    const Tensor end = as_in(pictures, figure(drawn, "corners"));
    return warp_perspective(pictures, homographies(start.expand_as(end), end));
  };
  return {probability, figures, change};
}

Augmentation jitter(double probability, double light, double saturation, double hue) {
  const auto figures = [=](const Drawing& drawing) { return draw_jitter(drawing, light, saturation, hue); };
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    struct Change {
      const char* figure;
      Tensor (*make)(const Tensor&, const Tensor&);
    };
    static constexpr std::array kChanges = {Change{"brightness", change_brightness},
                                            Change{"contrast", change_contrast},
                                            Change{"saturation", change_saturation}, Change{"hue", turn_hue}};
    const Tensor& order = figure(drawn, "order");
    Tensor changed = pictures;
    for (std::int64_t i = 0; i < order.size(0); ++i) {
      const Change& one = kChanges.at(static_cast<std::size_t>(order[i].item<std::int64_t>()));
      changed = one.make(changed, figure(drawn, one.figure));
    }
    return changed;
  };
  return {probability, figures, change};
}

Augmentation erasing(double probability) {
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    return erase_boxes(pictures, figure(drawn, "box"));
  };
  return {probability, draw_box_to_erase, change, /*together=*/true};
}

Augmentation rotation(double probability, double degrees) {
  const auto figures = [=](const Drawing& drawing) { return draw_angle(drawing, degrees); };
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    const Tensor matrices = rotation_matrices(as_in(pictures, figure(drawn, "angle")), middle_of(pictures.size(2)));
    return warp_affine(pictures, matrices, Outside::Zeros, /*align_corners=*/true);
  };
  return {probability, figures, change};
}

Augmentation sharpness(double probability, double most) {
  const auto figures = [=](const Drawing& drawing) { return draw_factor(drawing, most); };
  return {probability, figures,
          [](const Tensor& pictures, const Draws& drawn) { return sharpen(pictures, figure(drawn, "factor")); }};
}

Augmentation noise(double probability) {
  return {probability, draw_noise, [](const Tensor& pictures, const Draws& drawn) {
            return pictures + as_in(pictures, figure(drawn, "noise"));
          }};
}

Augmentation elastic(double probability) {
  return {probability, draw_elastic,
          [](const Tensor& pictures, const Draws& drawn) { return bend_elastic(pictures, figure(drawn, "noise")); }};
}

Augmentation spline(double probability) {
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    return bend_spline(pictures, figure(drawn, "points"));
  };
  return {probability, draw_points, change, /*together=*/true};
}

Augmentation whole_crop(double probability) {
  const auto change = [](const Tensor& pictures, const Draws&) { return pictures; };
  return {probability, draw_whole_crop, change, /*together=*/true};
}

Augmentation resized_crop(double probability) {
  const auto change = [](const Tensor& pictures, const Draws& drawn) {
    return enlarge_boxes(pictures, figure(drawn, "box"));
  };
  return {probability, draw_box_to_enlarge, change, /*together=*/true};
}

Augmentation flip(double probability) {
  return {probability, [](const Drawing&) { return Draws{}; },
          [](const Tensor& pictures, const Draws&) { return pictures.flip(3); }};
}

// The augmentations of Latest, and of NrUpdated, which differs in two of them.
Augmentation named(Augment name, bool nr_updated) {
  switch (name) {
    case Augment::Ji:
      return jitter(0.7, 0.1, 0.1, 0.1);
    case Augment::Sh:
      return sharpness(0.5, 0.3);
    case Augment::Gn:
      return noise(0.5);
    case Augment::Pe:
      return perspective(0.7, nr_updated ? 0.5 : 0.7);
    case Augment::Ro:
      return rotation(0.7, 15);
    case Augment::Af:
      return affine(0.7, nr_updated ? 30 : 15, 5, Outside::Zeros);
    case Augment::Et:
      return elastic(0.7);
    case Augment::Ts:
      return spline(0.7);
    case Augment::Cr:
      return whole_crop(0.5);
    case Augment::Er:
      return erasing(0.7);
    case Augment::Re:
      return resized_crop(0.5);
  }
  contract_broken("unknown Augment", __FILE__, __LINE__);
}

Draws with_figures(const Augmentation& augmentation, Drawing drawing, const Tensor& chosen) {
  drawing.count = chosen.sum().item<std::int64_t>();
  Draws drawn = augmentation.figures(drawing);
  drawn["chosen"] = chosen;
  return drawn;
}

}  // namespace

Draws Augmentation::draw(const Drawing& drawing) const {
  const Tensor chances = at::full({together ? 1 : drawing.count}, probability, at::kFloat);
  const Tensor chosen = at::bernoulli(chances, drawing.generator).to(at::kBool);
  return with_figures(*this, drawing, chosen.expand({drawing.count}).clone());
}

Draws Augmentation::draw_all(const Drawing& drawing) const {
  return with_figures(*this, drawing, at::ones({drawing.count}, at::kBool));
}

Tensor Augmentation::apply(const Tensor& pictures, const Draws& drawn) const {
  const Tensor chosen = figure(drawn, "chosen").to(at::kBool);
  if (!chosen.any().item<bool>()) return pictures;
  const Tensor changed = change(at::index(pictures, {chosen}), drawn);
  return at::index_put(pictures, {chosen}, changed);
}

std::vector<Augmentation> augmentations_of(CutMethod method, const std::vector<Augment>& asked) {
  std::vector<Augmentation> all;
  switch (method) {
    case CutMethod::Original:
      return {};
    case CutMethod::Updated:
      return {flip(0.5), jitter(0.7, 0, 0.01, 0.01), sharpness(0.4, 0.3),
              affine(0.8, 30, std::nullopt, Outside::Border), perspective(0.4, 0.2)};
    case CutMethod::UpdatedPooling:
      return {affine(0.7, 15, std::nullopt, Outside::Border), perspective(0.7, 0.7), jitter(0.7, 0, 0.1, 0.1),
              erasing(0.7)};
    case CutMethod::Latest:
    case CutMethod::NrUpdated:
      for (const Augment name : asked) all.push_back(named(name, method == CutMethod::NrUpdated));
      return all;
  }
  contract_broken("unknown CutMethod", __FILE__, __LINE__);
}

}  // namespace ullage::vqgan_clip
