// SPDX-License-Identifier: Apache-2.0
#pragma once

// The less common augmentations of square pictures (N,3,side,side), as in kornia 0.5.4. Their draws are float32
// (figures.h); results have the dtype of the pictures.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

// Moves pixels by noise (N,2,side,side) that is blurred by a 63 x 63 Gaussian of deviation 32.
at::Tensor bend_elastic(const at::Tensor& pictures, const at::Tensor& noise);

// The five anchors of a thin plate spline, (5,2), in -1..1.
at::Tensor spline_anchors(const at::TensorOptions& options);
// Bends the pictures by the spline that takes the points (N,5,2) to the anchors. As in kornia, the anchors are its
// centers both when it is solved and when it is applied.
at::Tensor bend_spline(const at::Tensor& pictures, const at::Tensor& points);

// Enlarges boxes (N,4) of left, top, width, height to the whole square, corner pixel to corner pixel.
at::Tensor enlarge_boxes(const at::Tensor& pictures, const at::Tensor& boxes);

// Sets pixels inside the boxes (N,4) to 0.
at::Tensor erase_boxes(const at::Tensor& pictures, const at::Tensor& boxes);

}  // namespace ullage::vqgan_clip
