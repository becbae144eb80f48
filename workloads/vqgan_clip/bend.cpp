// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/bend.h"

#include "vqgan_clip/warp.h"

#include <ATen/ATen.h>

#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

// (2,1,63): the same taps for x and for y.
Tensor elastic_taps(const at::TensorOptions& options) {
  const Tensor x = at::arange(63, options) - 31;
  const Tensor taps = (-x.pow(2) / (2.0 * 32 * 32)).exp();
  return (taps / taps.sum()).expand({2, 1, 63});
}

// Returns r^2 log(r^2 + 1e-8) / 2 between points (N,P,2) and centers (N,Q,2): (N,P,Q). r^2 is computed by expanding the
// square, so it is clamped to 0.
Tensor radial(const Tensor& points, const Tensor& centers) {
  Tensor squared = at::matmul(-2 * points, centers.transpose(1, 2)) + points.pow(2).sum(2, /*keepdim=*/true);
  squared = (squared + centers.pow(2).sum(2).unsqueeze(1)).clamp_min(0);
  return 0.5 * squared * (squared + 1e-8).log();
}

}  // namespace

Tensor bend_elastic(const Tensor& pictures, const Tensor& noise) {
  const Tensor taps = elastic_taps(pictures.options());
  const auto blurred = [](const Tensor& x, const Tensor& window, at::IntArrayRef around) {
    return at::conv2d(x, window, {}, 1, around, 1, /*groups=*/2);
  };
  const Tensor down = blurred(noise.to(pictures.scalar_type()), taps.unsqueeze(3), {31, 0});
  const Tensor away = blurred(down, taps.unsqueeze(2), {0, 31}).permute({0, 2, 3, 1});
  const Tensor grid = (mesh(pictures.size(2), pictures.options()) + away).clamp(-1, 1);
  return fetch(pictures, grid, Outside::Zeros, /*align_corners=*/false);
}

// One corner of the square is there twice and one is missing, as in kornia.
Tensor spline_anchors(const at::TensorOptions& options) {
  return at::tensor({-1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 0.0, 0.0}, options).view({5, 2});
}

Tensor bend_spline(const Tensor& pictures, const Tensor& drawn) {
  const std::int64_t count = pictures.size(0), side = pictures.size(2);
  const Tensor points = drawn.to(pictures.scalar_type());
  const Tensor anchors = spline_anchors(pictures.options()).expand({count, 5, 2});
  const Tensor plane = at::constant_pad_nd(points, {1, 0}, 1);
  const Tensor upper = at::cat({radial(points, anchors), plane}, 2);
  const Tensor lower = at::cat({plane.transpose(1, 2), at::zeros({count, 3, 3}, points.options())}, 2);
  const Tensor solved = at::linalg_solve(at::cat({upper, lower}, 1), at::constant_pad_nd(anchors, {0, 0, 0, 3}));
  const Tensor pixels = mesh(side, pictures.options()).view({1, -1, 2}).expand({count, -1, 2});
  const Tensor grid = at::matmul(radial(pixels, anchors), solved.narrow(1, 0, 5)) +
                      at::matmul(pixels, solved.narrow(1, 6, 2)) + solved.narrow(1, 5, 1);
  return fetch(pictures, grid.view({count, side, side, 2}), Outside::Zeros, /*align_corners=*/false);
}

Tensor enlarge_boxes(const Tensor& pictures, const Tensor& boxes) {
  const std::int64_t last = pictures.size(2) - 1;
  const std::vector<Tensor> box = boxes.to(pictures.scalar_type()).unbind(1);
  const Tensor across = (box[2] - 1).reciprocal() * last;
  const Tensor down = (box[3] - 1).reciprocal() * last;
  const Tensor zero = at::zeros_like(across);
  const Tensor one = at::ones_like(across);
  const Tensor matrices =
      at::stack({across, zero, -box[0] * across, zero, down, -box[1] * down, zero, zero, one}, 1).view({-1, 3, 3});
  return warp_affine(pictures, matrices, Outside::Zeros, /*align_corners=*/true);
}

Tensor erase_boxes(const Tensor& pictures, const Tensor& boxes) {
  const std::vector<Tensor> box = boxes.view({-1, 4, 1, 1, 1}).unbind(1);
  const Tensor x = at::arange(pictures.size(3));
  const Tensor y = at::arange(pictures.size(2)).unsqueeze(1);
  const auto within = [](const Tensor& pixels, const Tensor& first, const Tensor& size) {
    return (pixels >= first) & (pixels < first + size);
  };
  return pictures.masked_fill(within(x, box[0], box[2]) & within(y, box[1], box[3]), 0);
}

}  // namespace ullage::vqgan_clip
