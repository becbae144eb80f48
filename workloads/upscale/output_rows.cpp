// SPDX-License-Identifier: Apache-2.0
#include "upscale/output_rows.h"

#include <ATen/ops/cat.h>

namespace ullage::upscale {
namespace {

using at::Tensor;

// Returns the brightness of RGB rows: (1,3,h,W) to (1,1,h,W).
Tensor luma(const Tensor& rows) {
  return rows.select(1, 0).mul(0.299).add(rows.select(1, 1), 0.587).add(rows.select(1, 2), 0.114).unsqueeze(1);
}

}  // namespace

Tensor bytes_of_rows(const Tensor& rows, const Tensor& alpha, image::PngColour colour) {
  const bool grey = colour == image::PngColour::Grey || colour == image::PngColour::GreyAlpha;
  const bool transparent = colour == image::PngColour::GreyAlpha || colour == image::PngColour::Rgba;
  const auto bytes = [](const Tensor& x) { return x.clamp(0, 1).mul_(255).round_().to(at::kByte); };
  Tensor all = bytes(grey ? luma(rows.clamp(0, 1)) : rows);
  if (transparent) {
    // The alpha channel was upscaled as a grey RGB picture. Its brightness is the alpha again.
    const Tensor opaque = alpha.defined() ? Tensor() : all.narrow(1, 0, 1).clone().fill_(255);
    all = at::cat({all, alpha.defined() ? bytes(luma(alpha.clamp(0, 1))) : opaque}, 1);
  }
  // (1,C,h,W) to (h,W,C), the order of a PNG's bytes.
  return all.select(0, 0).permute({1, 2, 0}).contiguous();
}

}  // namespace ullage::upscale
