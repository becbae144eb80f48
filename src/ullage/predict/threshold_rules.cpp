// SPDX-License-Identifier: Apache-2.0
// The table of thresholds. A false alarm costs a run at other sizes; a missing rule breaks the promise of an exact
// prediction. So each rule covers more than what was seen.
#include "ullage/predict/thresholds.h"

namespace ullage::predict {
namespace {

constexpr std::string_view kThresholdConvolutions =
    "aten::convolution aten::_convolution aten::convolution_overrideable aten::convolution_backward "
    "aten::convolution_backward_overrideable aten::mkldnn_convolution aten::slow_conv3d aten::slow_conv3d_forward "
    "aten::_slow_conv2d_forward aten::_slow_conv2d_backward aten::thnn_conv2d";
constexpr Rule kThresholdRules[] = {
    {"*", Quantity::Dimensions, 1, When::Always, "an empty tensor takes no memory", "c10/core/CPUAllocator.cpp"},
    {"*", Quantity::Dimensions, 2, When::Always,
     "a size of one counts as any layout: kernels copy less or more and convolutions take another path",
     "c10/core/Contiguity.h; ATen/native/Convolution.cpp; measured: DCGAN-64 at batch 1"},
    {kThresholdConvolutions, Quantity::PointwiseBatch, 16, When::OneThread,
     "one thread computes a convolution with a kernel of one pixel through oneDNN from batch 16 on",
     "ATen/native/Convolution.cpp, use_mkldnn; measured"},
    {kThresholdConvolutions, Quantity::Batch, 16, When::WithoutOneDnn,
     "without oneDNN convolutions go through NNPACK from batch 16 on, with a block for each picture",
     "ATen/native/Convolution.cpp, use_nnpack; measured: 7 blocks become 22"},
    {kThresholdConvolutions, Quantity::LonePicture, 20481, When::Always,
     "a single picture is convolved through oneDNN from 20,481 elements on", "ATen/native/Convolution.cpp, use_mkldnn"},
    {kThresholdConvolutions, Quantity::Batch, kThreads, When::ManyThreads,
     "oneDNN shares the pictures of a batch among its threads: scratch grows until each has one",
     "oneDNN, jit_avx512_common_conv_kernel.cpp, balance; measured: 2 to 16 threads"},
    {kThresholdConvolutions, Quantity::Kernel, kEvery, When::Always,
     "oneDNN picks its way to compute a convolution by the size of the kernel, and this one grows with the knob",
     "measured: kernels of 4 to 16 pixels"},
    {"aten::mkldnn_rnn_layer aten::mkldnn_rnn_layer_backward", Quantity::Elements, kEvery, When::Always,
     "oneDNN pads the workspaces of a recurrent layer as it likes", "measured: 4 to 11 % off the law"},
    {"aten::sort aten::argsort aten::msort aten::unique_dim aten::_unique aten::_unique2 aten::unique_consecutive",
     Quantity::Elements, 32768, When::Always, "32,768 integers or more are sorted by radix, with buffers",
     "ATen/native/cpu/SortingKernel.cpp, can_use_radix_sort"},
    {"aten::scatter aten::scatter_ aten::scatter_add aten::scatter_add_ aten::scatter_reduce aten::scatter_reduce_ "
     "aten::gather aten::index_add aten::index_add_ aten::index_reduce aten::index_reduce_",
     Quantity::Features, 16, When::Always, "rows of 16 elements or more are sorted by index first, with buffers",
     "ATen/native/TensorAdvancedIndexing.cpp, can_use_expanded_index_path"},
    {"aten::_cdist_forward aten::cdist aten::_cdist_backward", Quantity::Rows, 26, When::Always,
     "distances of more than 25 points are computed through a matrix product", "ATen/native/Distance.cpp"},
};

}  // namespace

std::span<const Rule> rules() { return kThresholdRules; }

}  // namespace ullage::predict
