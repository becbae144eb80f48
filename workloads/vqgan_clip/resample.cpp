// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/resample.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

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

}  // namespace

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

}  // namespace ullage::vqgan_clip
