// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/cuda_rules.h"

namespace ullage::predict {
namespace {

constexpr std::string_view kConvolutions =
    "aten::convolution aten::_convolution aten::convolution_overrideable aten::mkldnn_convolution "
    "aten::convolution_backward aten::convolution_backward_overrideable aten::_slow_conv2d_forward "
    "aten::_slow_conv2d_backward aten::slow_conv3d_forward";
constexpr std::string_view kMatrixProducts =
    "aten::mm aten::bmm aten::addmm aten::baddbmm aten::addmv aten::mv aten::dot aten::linear aten::_addmm_activation "
    "aten::addbmm aten::ger";
constexpr std::string_view kAttention =
    "aten::_scaled_dot_product_flash_attention_for_cpu aten::_scaled_dot_product_flash_attention_for_cpu_backward";

constexpr CudaRule kCudaRules[] = {
    {CudaEffect::RemoveWithin,
     kConvolutions,
     {},
     {},
     "",
     "reorders and scratch of convolutions are oneDNN's",
     "ATen/native/mkldnn/Conv.cpp; seen in recordings: 257 blocks in a step of DCGAN-256"},
    {CudaEffect::RemoveWithin,
     kAttention,
     {},
     {},
     "",
     "buffers of attention are those of the CPU kernel's threads",
     "ATen/native/cpu/FlashAttentionKernel.cpp"},
    {CudaEffect::RemoveNumbers,
     "*",
     8_B,
     {},
     "",
     "numbers that ops wrap as tensors stay on the host",
     "c10/core/ScalarType; ATen/ScalarOps.h, scalar_to_tensor; seen in recordings: 327 blocks in a step of DCGAN-256"},
    {CudaEffect::RemoveVarying,
     "*",
     {},
     {},
     "",
     "buffers for sharing work among the threads of a CPU kernel",
     "ATen/native/TensorIteratorReduce.cpp, two_pass_reduction; ATen/native/cpu/UpSampleKernel.cpp"},
    {CudaEffect::HoldInLists,
     "aten::div",
     {},
     {},
     "",
     "Python's optimizers take lists of parameters on CUDA: the temporaries of all live together; the optimizers of a "
     "LibTorch program take one parameter after the other",
     "torch/optim/optimizer.py, _default_to_fused_or_foreach; torch/optim/adam.py, _multi_tensor_adam"},
    {CudaEffect::AddForThread, kMatrixProducts, 8519680_B, 32_MiB, "cuBLAS workspaces",
     "one workspace for the forward pass and one for autograd's thread, kept for good",
     "ATen/cuda/CublasHandlePool.cpp: 2 x 4 MiB + 8 x 16 KiB; 32 MiB on Hopper, counted for each card of 70 GiB or "
     "more; public recordings: one workspace in each of their 8 forward passes, two in each of their 5 steps with a "
     "backward pass"},
    {CudaEffect::AddWithin,
     "aten::addmm aten::_addmm_activation",
     1_MiB,
     {},
     "cuBLASLt workspace",
     "a product with a bias takes a workspace while it runs",
     "ATen/cuda/CUDABlas.cpp, CUBLASLT_WORKSPACE_SIZE"},
    {CudaEffect::AddToProcess,
     "*",
     Bytes{522ull << 20},
     {},
     "CUDA context and libraries",
     "what the process holds on the card outside the allocator",
     "public out-of-memory messages, the process's bytes less those allocated and cached: 336 to 973 MiB, 522 MiB on a "
     "card of 24 GB"},
    {CudaEffect::Unknown,
     kConvolutions,
     {},
     {},
     "cuDNN workspaces",
     "cuDNN takes workspaces that depend on the algorithm it picks",
     "not known before a card is measured"},
    {CudaEffect::Unknown,
     kAttention,
     {},
     {},
     "attention kernels of the card",
     "in place of the CPU's flash attention a card runs flash or memory-efficient attention; the statistics that these "
     "save are padded to other sizes",
     "not known before a card is measured"},
};

}  // namespace

std::span<const CudaRule> cuda_rules() { return kCudaRules; }

}  // namespace ullage::predict
