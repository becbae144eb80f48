// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warps square pictures (N,3,side,side) as kornia 0.5.4 does. It takes a matrix (N,3,3) from source to target pixels,
// its inverse, and a bilinear grid. As in kornia, pixels are mapped to -1..1 by 2x/(side-1)-1 for both values of
// `align_corners`. The grid is generated and sampled according to `align_corners`. Matrices and grids have the dtype of
// the pictures, and no gradient.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::vqgan_clip {

enum class Outside { Zeros, Border };  // what the area outside the picture shows

// Fetches every pixel from the place (x, y) in the grid (N,side,side,2).
at::Tensor fetch(const at::Tensor& pictures, const at::Tensor& grid, Outside outside, bool align_corners);

// Returns x and y of every pixel, from -1 at the first to 1 at the last: (1,side,side,2).
at::Tensor mesh(std::int64_t side, const at::TensorOptions& options);

// Uses only the first two rows of the inverted matrices.
at::Tensor warp_affine(const at::Tensor& pictures, const at::Tensor& matrices, Outside outside, bool align_corners);

// The area outside is zero. Divides by the third coordinate plus 1e-8, or by nothing if the coordinate is within 1e-8
// of 0.
at::Tensor warp_perspective(const at::Tensor& pictures, const at::Tensor& matrices);

// The middle of a side's pixels, the center of rotations and shears.
inline double middle_of(std::int64_t side) { return static_cast<double>(side - 1) / 2; }

// Return matrices (N,3,3) for angles in degrees (N), about (center, center). A rotation is to the left as seen.
at::Tensor rotation_matrices(const at::Tensor& degrees, double center);
at::Tensor shear_matrices(const at::Tensor& degrees_x, const at::Tensor& degrees_y, double center);

// Returns the homographies (N,3,3) that take four points (N,4,2) to four others. Solves 8 x 8 equations each; the last
// element is 1.
at::Tensor homographies(const at::Tensor& start, const at::Tensor& end);

}  // namespace ullage::vqgan_clip
