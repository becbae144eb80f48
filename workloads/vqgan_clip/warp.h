// SPDX-License-Identifier: Apache-2.0
#pragma once

// Square pictures (N,3,side,side) bent as kornia 0.5.4 bends them: a matrix (N,3,3) from source to target pixels, its
// inverse, and a bilinear grid. Pixels are made -1..1 by 2x/(side-1)-1 whatever `align_corners` says; the grid is then
// read with it. Both are kornia's. Matrices and grids have the dtype of the pictures, and no gradient.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::vqgan_clip {

enum class Outside { Zeros, Border };  // what is seen outside the picture

// Every pixel from where the grid (N,side,side,2) of x and y says.
at::Tensor fetch(const at::Tensor& pictures, const at::Tensor& grid, Outside outside, bool align_corners);

// x and y of every pixel, -1..1 from its first to its last: (1,side,side,2).
at::Tensor mesh(std::int64_t side, const at::TensorOptions& options);

// The first two rows of the matrices count.
at::Tensor warp_affine(const at::Tensor& pictures, const at::Tensor& matrices, Outside outside, bool align_corners);

// Zeros outside. The third coordinate is divided by with 1e-8 added, and not at all where it is within 1e-8 of 0.
at::Tensor warp_perspective(const at::Tensor& pictures, const at::Tensor& matrices);

// The middle of a side's pixels, about which pictures are turned and sheared.
inline double middle_of(std::int64_t side) { return static_cast<double>(side - 1) / 2; }

// (N,3,3) of angles in degrees (N): turned to the left as seen, or sheared, about center, center.
at::Tensor rotation_matrices(const at::Tensor& degrees, double center);
at::Tensor shear_matrices(const at::Tensor& degrees_x, const at::Tensor& degrees_y, double center);

// The homographies (N,3,3) that take four points (N,4,2) to four others: 8 x 8 equations each, the last figure is 1.
at::Tensor homographies(const at::Tensor& start, const at::Tensor& end);

}  // namespace ullage::vqgan_clip
