// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/warp.h"

#include <ATen/ATen.h>

#include <numbers>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

constexpr double kDegree = std::numbers::pi / 180;

// The matrix (1,3,3) from pixels to -1..1.
Tensor unit(std::int64_t side, const at::TensorOptions& options) {
  const double step = 2 / static_cast<double>(side - 1);
  return at::tensor({step, 0.0, -1.0, 0.0, step, -1.0, 0.0, 0.0, 1.0}, options).view({1, 3, 3});
}

// Returns the matrices from -1..1 of the target to -1..1 of the source.
Tensor inverse_between_units(const Tensor& matrices, std::int64_t side) {
  const Tensor to_unit = unit(side, matrices.options());
  return at::linalg_inv(at::matmul(to_unit, at::matmul(matrices, at::linalg_inv(to_unit))));
}

// `rows` are the nine elements, (N) each, row by row.
Tensor as_matrices(const std::vector<Tensor>& rows) { return at::stack(rows, 1).view({-1, 3, 3}); }

}  // namespace

Tensor fetch(const Tensor& pictures, const Tensor& grid, Outside outside, bool align_corners) {
  constexpr std::int64_t kBilinear = 0, kZeros = 0,
                         kBorder = 1;  // GridSamplerInterpolation, GridSamplerPadding of ATen
  return at::grid_sampler(pictures, grid, kBilinear, outside == Outside::Zeros ? kZeros : kBorder, align_corners);
}

Tensor mesh(std::int64_t side, const at::TensorOptions& options) {
  const Tensor line = (at::arange(side, options) / (side - 1) - 0.5) * 2;
  return at::stack({line.expand({side, side}), line.unsqueeze(1).expand({side, side})}, 2).unsqueeze(0);
}

Tensor warp_affine(const Tensor& pictures, const Tensor& matrices, Outside outside, bool align_corners) {
  const Tensor back = inverse_between_units(matrices, pictures.size(2));
  const Tensor grid = at::affine_grid_generator(back.narrow(1, 0, 2), pictures.sizes(), align_corners);
  return fetch(pictures, grid, outside, align_corners);
}

Tensor warp_perspective(const Tensor& pictures, const Tensor& matrices) {
  const std::int64_t side = pictures.size(2);
  const Tensor back = inverse_between_units(matrices, side);
  const Tensor pixels = at::constant_pad_nd(mesh(side, matrices.options()), {0, 1}, 1).view({1, -1, 3});
  const Tensor points = at::matmul(pixels, back.transpose(1, 2));
  const Tensor z = points.narrow(2, 2, 1);
  const Tensor scale = at::where(z.abs() > 1e-8, (z + 1e-8).reciprocal(), 1);
  const Tensor grid = (scale * points.narrow(2, 0, 2)).view({-1, side, side, 2});
  return fetch(pictures, grid, Outside::Zeros, /*align_corners=*/false);
}

Tensor rotation_matrices(const Tensor& degrees, double center) {
  const Tensor angle = degrees * kDegree;
  const Tensor cos = angle.cos();
  const Tensor sin = angle.sin();
  const Tensor rest = at::rsub(cos, 1) * center;
  const Tensor zero = at::zeros_like(cos);
  const Tensor one = at::ones_like(cos);
  return as_matrices({cos, sin, rest - sin * center, -sin, cos, sin * center + rest, zero, zero, one});
}

Tensor shear_matrices(const Tensor& degrees_x, const Tensor& degrees_y, double center) {
  const Tensor a = (degrees_x * kDegree).tan();
  const Tensor b = (degrees_y * kDegree).tan();
  const Tensor zero = at::zeros_like(a);
  const Tensor one = at::ones_like(a);
  return as_matrices({one, -a, a * center, -b, a * b + 1, b * (a * center + center), zero, zero, one});
}

Tensor homographies(const Tensor& start, const Tensor& end) {
  const Tensor x = start.select(2, 0), y = start.select(2, 1);
  const Tensor u = end.select(2, 0), v = end.select(2, 1);
  const Tensor zero = at::zeros_like(x);
  const Tensor one = at::ones_like(x);
  const Tensor of_u = at::stack({x, y, one, zero, zero, zero, -x * u, -y * u}, 2);
  const Tensor of_v = at::stack({zero, zero, zero, x, y, one, -x * v, -y * v}, 2);
  const Tensor equations = at::stack({of_u, of_v}, 2).view({-1, 8, 8});
  const Tensor solved = at::linalg_solve(equations, end.reshape({-1, 8, 1})).squeeze(2);
  return at::cat({solved, at::ones({solved.size(0), 1}, solved.options())}, 1).view({-1, 3, 3});
}

}  // namespace ullage::vqgan_clip
