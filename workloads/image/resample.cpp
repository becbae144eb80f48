// SPDX-License-Identifier: Apache-2.0
#include "image/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ullage::image {
namespace {

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Filter filter) { return filter == Filter::Lanczos ? Kernel{lanczos, 3.0} : Kernel{triangle, 1.0}; }

// Python's round(twice / 2): a half goes to the even neighbour.
std::uint64_t half_to_even(std::uint64_t twice) {
  const std::uint64_t down = twice / 2;
  return twice % 2 == 0 || down % 2 == 0 ? down : down + 1;
}

// Rounds as Pillow does, to the bit.
std::int32_t to_fixed(double weight) {
  const double half = weight < 0 ? -0.5 : 0.5;
  return static_cast<std::int32_t>(half + weight * (1 << kWeightBits));  // NOLINT(bugprone-incorrect-roundings)
}

}  // namespace

SideResize square_side(std::uint32_t length, std::uint32_t shorter, std::uint32_t side) {
  // int(side * length / shorter) as in Python: the product is exact, the quotient a double whose fraction is cut off.
  const auto product = static_cast<double>(std::uint64_t{side} * length);
  const auto out = length == shorter ? side : static_cast<std::uint64_t>(product / shorter);
  return {length, out, half_to_even(out - side), side};
}

Weights::Weights(const SideResize& side, Filter filter) {
  const Kernel kernel = kernel_of(filter);
  const double scale = static_cast<double>(side.in) / static_cast<double>(side.out);
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;  // wider when shrinking
  const double inverse = 1.0 / filter_scale;
  longest_ = static_cast<std::uint32_t>(std::ceil(support)) * 2 + 1;
  ranges_.reserve(side.window);
  weights_.resize(std::size_t{side.window} * longest_);
  std::vector<double> exact(longest_);
  for (std::uint32_t i = 0; i < side.window; ++i) {
    const double center = (static_cast<double>(side.first + i) + 0.5) * scale;
    const auto begin = static_cast<std::uint32_t>(std::max(center - support + 0.5, 0.0));
    const auto end = static_cast<std::uint32_t>(std::min(center + support + 0.5, static_cast<double>(side.in)));
    double sum = 0.0;
    for (std::uint32_t x = begin; x < end; ++x) {
      exact[x - begin] = kernel.weight((static_cast<double>(x) - center + 0.5) * inverse);
      sum += exact[x - begin];
    }
    for (std::uint32_t x = begin; x < end; ++x) {
      weights_[std::size_t{i} * longest_ + (x - begin)] = to_fixed(exact[x - begin] / sum);
    }
    ranges_.push_back({begin, end});
  }
}

}  // namespace ullage::image
