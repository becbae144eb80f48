// SPDX-License-Identifier: Apache-2.0
#include "pulse/downscaler.h"

#include "ullage/base/check.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

namespace ullage::pulse {
namespace {

constexpr std::int64_t kColours = 3;

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

}  // namespace

Downscaler::Downscaler(std::int64_t resolution, std::int64_t side, at::ScalarType type) : factor_(resolution / side) {
  ULLAGE_CHECK(side >= 2 && resolution % side == 0, "the side of the small picture divides that of the large one");
  const auto f = static_cast<double>(factor_);
  std::vector<double> taps;
  double sum = 0;
  for (std::int64_t i = 0; i < 4 * factor_; ++i)
    sum += taps.emplace_back(cubic((static_cast<double>(i) - 2 * f + 0.5) / f));
  for (double& tap : taps) tap /= sum;
  taps_ = at::tensor(taps, at::kDouble).to(type).expand({kColours, 1, -1});
}

at::Tensor Downscaler::operator()(const at::Tensor& pictures) const {
  const std::int64_t before = 3 * factor_ / 2;
  const std::int64_t after = 3 * factor_ - before;
  at::Tensor x = at::reflection_pad2d(pictures, {0, 0, before, after});
  x = at::conv2d(x, taps_.unsqueeze(3), {}, {factor_, 1}, at::IntArrayRef{0, 0}, 1, kColours);
  x = at::reflection_pad2d(x, {before, after, 0, 0});
  return at::conv2d(x, taps_.unsqueeze(2), {}, {1, factor_}, at::IntArrayRef{0, 0}, 1, kColours);
}

}  // namespace ullage::pulse
