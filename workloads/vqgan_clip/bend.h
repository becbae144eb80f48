// SPDX-License-Identifier: Apache-2.0
#pragma once

// Augmentations that are seldom asked for, of square pictures (N,3,side,side), as kornia 0.5.4 does them. What was
// drawn for them is float32 (figures.h); what comes out has the dtype of the pictures.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

// Every pixel is fetched from where noise (N,2,side,side) says that was blurred by 63 x 63 of deviation 32.
at::Tensor bend_elastic(const at::Tensor& pictures, const at::Tensor& noise);

// The five places of a thin plate spline, (5,2), -1..1.
at::Tensor spline_anchors(const at::TensorOptions& options);
// Bent as the spline bends that takes the points (N,5,2) to the anchors; its centers are the anchors in both places.
at::Tensor bend_spline(const at::Tensor& pictures, const at::Tensor& points);

// Boxes (N,4) of left, top, width, height, corner pixel to corner pixel, on the whole square.
at::Tensor enlarge_boxes(const at::Tensor& pictures, const at::Tensor& boxes);

// 0 inside the boxes (N,4).
at::Tensor erase_boxes(const at::Tensor& pictures, const at::Tensor& boxes);

}  // namespace ullage::vqgan_clip
