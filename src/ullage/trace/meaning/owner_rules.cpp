// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/owner_rules.h"

#include <algorithm>
#include <array>
#include <string>

namespace ullage::trace {
namespace {

using enum Category;
using enum Phase;
constexpr auto Python = OwnerRule::Frames::Python;
constexpr auto Own = OwnerRule::Frames::Own;
constexpr auto Root = OwnerRule::Frames::Root;
constexpr auto Native = OwnerRule::Frames::Native;
constexpr auto Weak = OwnerRule::Frames::Weak;

constexpr OwnerRule kRules[] = {
    // Workspaces of libraries. at::cuda::blas takes raw pointers, so what it allocates is never a result.
    {Native, "", "*getNewWorkspace*", Unknown, Library, "cuBLAS workspace"},
    {Native, "", "*getCUDABlasLtWorkspace*", Unknown, Library, "cuBLAS workspace"},
    {Native, "", "*getCurrentCUDABlasHandle*", Unknown, Library, "cuBLAS workspace"},
    {Native, "", "at::cuda::blas::*", Unknown, Library, "cuBLAS workspace"},
    {Native, "", "void at::cuda::blas::*", Unknown, Library, "cuBLAS workspace"},
    {Native, "", "*raw_cudnn_convolution*", Unknown, Library, "cuDNN workspace"},
    {Native, "", "*run_conv_plan*", Unknown, Library, "cuDNN workspace"},
    {Native, "", "*cudnn*Workspace*", Unknown, Library, "cuDNN workspace"},
    {Native, "", "*allocate_cudnn*", Unknown, Library, "cuDNN workspace"},
    {Native, "", "*run_cudnn_SDP*", Unknown, Library, "cuDNN workspace"},
    {Native, "", "*cusolver*", Unknown, Library, "cuSOLVER workspace"},
    {Native, "", "*magma*", Unknown, Library, "MAGMA workspace"},
    {Native, "", "*CuFFT*", Unknown, Library, "cuFFT workspace"},
    {Native, "", "*ProcessGroupNCCL*", Unknown, Library, "NCCL staging"},
    {Native, "", "*at::cuda::cub::*", Unknown, Temporaries, ""},
    {Native, "", "*ThrustAllocator*", Unknown, Temporaries, ""},

    // What the compiler runs on the device while it compiles, for example to compare kernels.
    {Python, "torch/_dynamo/convert_frame.py", "", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/fx_passes/pad_mm.py", "", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/select_algorithm.py", "", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/runtime/benchmarking.py", "", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/autotune_process.py", "", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/runtime/triton_heuristics.py", "*benchmark*", Compiling, Temporaries, ""},
    {Python, "torch/_inductor/runtime/triton_heuristics.py", "*autotune*", Compiling, Temporaries, ""},
    {Python, "triton/testing.py", "", Compiling, Temporaries, ""},
    {Python, "triton/runtime/autotuner.py", "_bench", Compiling, Temporaries, ""},

    // Gradients that stay. lifetimes.h finds those that another node makes and AccumulateGrad takes over.
    {Native, "", "*AccumulateGrad*", Backward, Gradients, ""},
    {Native, "", "*c10d::Reducer*", Unknown, Gradients, "DistributedDataParallel buckets"},
    {Python, "torch/nn/parallel/distributed.py", "_ddp_init_helper", Unknown, Gradients,
     "DistributedDataParallel buckets"},
    {Python, "megatron/core/distributed/", "__init__", Loading, Gradients, ""},

    // Optimizers. lifetimes.h finds the state of those that are not in torch.
    {Python, "torch/optim/", "_init_group", Optimizer, OptimizerState, ""},
    {Python, "torch/optim/", "_init_state", Optimizer, OptimizerState, ""},
    {Python, "torch/optim/swa_utils.py", "__init__", Loading, Parameters, ""},
    {Python, "torch/optim/", "load_state_dict", Loading, OptimizerState, ""},
    {Python, "torch/optim/", "_process_value_according_to_param_policy", Loading, OptimizerState, ""},
    {Python, "bitsandbytes/optim/", "init_state", Optimizer, OptimizerState, ""},
    {Python, "deepspeed/runtime/zero/", "initialize_optimizer_states", Loading, OptimizerState, ""},
    {Python, "optim", "__init__", Loading, OptimizerState, ""},
    {Python, "torch/optim/lr_scheduler.py", "step", Unknown, std::nullopt, ""},
    {Python, "torch/optim/", "", Optimizer, std::nullopt, ""},
    {Python, "optim", "step", Optimizer, std::nullopt, ""},
    {Python, "deepspeed/ops/", "step", Optimizer, std::nullopt, ""},
    {Python, "torch/nn/utils/clip_grad.py", "", Optimizer, std::nullopt, ""},
    {Python, "amp/grad_scaler.py", "", Optimizer, std::nullopt, ""},
    {Python, "", "zero_grad", Optimizer, std::nullopt, ""},
    {Own, "", "*clip*grad*", Optimizer, std::nullopt, ""},
    {Own, "", "*grad*clip*", Optimizer, std::nullopt, ""},
    {Native, "", "Optimizer.*", Optimizer, std::nullopt, ""},

    // The backward pass. The outermost Python frame of an engine thread is a custom Function's apply or a hook, if any.
    {Native, "", "torch::autograd::Engine::*", Backward, std::nullopt, ""},
    {Native, "", "autograd::engine::*", Backward, std::nullopt, ""},
    {Root, "torch/autograd/function.py", "apply", Backward, std::nullopt, ""},
    {Root, "torch/utils/checkpoint.py", "", Backward, std::nullopt, ""},
    {Python, "torch/autograd/graph.py", "_engine_run_backward", Backward, std::nullopt, ""},
    {Python, "torch/autograd/__init__.py", "", Backward, std::nullopt, ""},
    {Python, "", "backward", Backward, std::nullopt, ""},

    // Parameters and buffers: made, moved, copied, loaded.
    {Python, "torch/nn/modules/module.py", "_apply", Loading, Parameters, ""},
    {Python, "torch/nn/modules/module.py", "convert", Loading, Parameters, ""},
    {Python, "torch/nn/modules/module.py", "*load_*state_dict", Loading, Parameters, ""},
    {Python, "torch/nn/modules/", "__init__", Loading, Parameters, ""},
    {Python, "torch/nn/modules/", "reset_parameters", Loading, Parameters, ""},
    {Python, "torch/nn/modules/lazy.py", "", Loading, Parameters, ""},
    {Python, "torch/nn/init.py", "", Loading, Parameters, ""},
    {Python, "torch/nn/parameter.py", "", Loading, Parameters, ""},
    {Python, "torch/nn/parallel/replicate.py", "", Loading, Parameters, ""},
    {Python, "torch/distributed/fsdp/", "*flat_param*", Loading, Parameters, ""},
    {Python, "torch/distributed/fsdp/", "*shard_param*", Loading, Parameters, ""},
    {Python, "torch/distributed/fsdp/", "*all_gather*", Unknown, Parameters, ""},
    {Python, "torch/distributed/fsdp/", "*unshard*", Unknown, Parameters, ""},
    {Python, "torch/serialization.py", "", Loading, Parameters, ""},
    {Python, "safetensors/", "", Loading, Parameters, ""},
    {Python, "accelerate/", "set_module_tensor_to_device", Loading, Parameters, ""},
    {Python, "transformers/", "*from_pretrained", Loading, Parameters, ""},
    {Python, "transformers/modeling_utils.py", "*load*", Loading, Parameters, ""},
    {Python, "transformers/core_model_loading.py", "", Loading, Parameters, ""},
    {Python, "diffusers/", "*from_pretrained", Loading, Parameters, ""},
    {Python, "bitsandbytes/nn/", "_quantize", Loading, Parameters, ""},
    {Python, "bitsandbytes/nn/", "cuda", Loading, Parameters, ""},
    {Python, "bitsandbytes/nn/", "to", Loading, Parameters, ""},
    {Python, "peft/tuners/", "update_layer", Loading, Parameters, ""},
    {Python, "vllm/model_executor/model_loader/", "", Loading, Parameters, ""},

    // The model's inputs.
    {Python, "torch/utils/data/", "", Loading, Inputs, ""},
    {Python, "torch/nn/parallel/scatter_gather.py", "scatter*", Loading, Inputs, ""},
    {Python, "torch/nn/parallel/distributed.py", "_pre_forward", Loading, Inputs, ""},
    {Python, "lightning", "*data_to_device", Loading, Inputs, ""},
    {Python, "lightning", "batch_to", Loading, Inputs, ""},
    {Python, "accelerate/", "send_to_device", Loading, Inputs, ""},
    {Python, "transformers/trainer.py", "_prepare_input*", Loading, Inputs, ""},
    {Python, "transformers/tokenization_utils_base.py", "to", Loading, Inputs, ""},
    {Python, "transformers/feature_extraction_utils.py", "to", Loading, Inputs, ""},
    {Native, "", "enumerate(DataLoader)*", Loading, Inputs, ""},
    {Own, "", "*collate*", Loading, Inputs, ""},
    {Own, "", "*get_batch*", Loading, Inputs, ""},
    {Own, "data", "__init__", Loading, Inputs, ""},
    {Own, "data", "__getitem__", Loading, Inputs, ""},
    {Own, "", "__init__", Loading, Parameters, ""},
    {Own, "", "load_*", Loading, std::nullopt, ""},

    // Evaluation, by the usual names of its functions.
    {Own, "", "validate", Evaluation, Activations, ""},
    {Own, "", "*validation*", Evaluation, Activations, ""},
    {Own, "", "evaluate*", Evaluation, Activations, ""},
    {Own, "", "eval_*", Evaluation, Activations, ""},
    {Own, "", "*inference*", Evaluation, Activations, ""},
    {Own, "", "test", Evaluation, Activations, ""},
    {Own, "", "test_step", Evaluation, Activations, ""},
    {Own, "", "test_epoch*", Evaluation, Activations, ""},
    {Python, "transformers/trainer.py", "evaluation_loop", Evaluation, Activations, ""},
    {Python, "lightning", "validation_step", Evaluation, Activations, ""},
    {Python, "transformers/generation/", "", Evaluation, Activations, ""},

    // The forward pass. `__call__` in module.py is no module's: it calls a hook, also one of load_state_dict.
    {Python, "transformers/cache_utils.py", "", Forward, Activations, "key/value cache (transformers cache_utils.py)"},
    {Python, "torch/nn/modules/module.py", "*_call_impl", Forward, Activations, ""},
    {Python, "torch/nn/functional.py", "", Forward, Activations, ""},
    {Python, "torch/nn/modules/", "forward", Forward, Activations, ""},
    {Python, "torch/autograd/function.py", "apply", Forward, Activations, ""},
    {Python, "torch/_inductor/output_code.py", "__call__", Forward, Activations, ""},
    {Python, "torch/_functorch/_aot_autograd/runtime_wrappers.py", "", Forward, Activations, ""},
    {Python, "torch/utils/checkpoint.py", "", Forward, Activations, ""},
    {Python, "flash_attn/", "", Forward, Activations, ""},
    {Python, "xformers/ops/", "", Forward, Activations, ""},
    {Python, "liger_kernel/", "", Forward, Activations, ""},
    {Python, "", "forward", Forward, Activations, ""},
    {Python, "", "*cross_entropy*", Forward, Activations, ""},
    {Own, "", "*loss*", Forward, Activations, ""},
    {Own, "", "*criterion*", Forward, Activations, ""},

    // Ops outside of all of these: a line of the person's own moves a batch or makes one.
    {Weak, "", "at::_ops::to_dtype_layout::*", Loading, Inputs, ""},
    {Weak, "", "at::_ops::to_device::*", Loading, Inputs, ""},
    {Weak, "", "at::_ops::randint*", Loading, Inputs, ""},
    {Weak, "", "at::_ops::rand::*", Loading, Inputs, ""},
    {Weak, "", "at::_ops::randn::*", Loading, Inputs, ""},
    {Weak, "", "torch::utils::tensor_ctor*", Loading, Inputs, ""},
    {Weak, "", "aten::to", Loading, Inputs, ""},
    {Weak, "", "aten::rand*", Loading, Inputs, ""},
};

// Parts of paths of installed code. Python's own library is in lib/pythonX.Y.
constexpr std::array kLibraryPaths = {
    std::string_view("site-packages/"), std::string_view("dist-packages/"), std::string_view("/torch/"),
    std::string_view("lib/python"),     std::string_view("torchinductor_"), std::string_view("/transformers/"),
    std::string_view("/einops/"),       std::string_view("/accelerate/"),   std::string_view("/lightning/"),
    std::string_view("/deepspeed/"),    std::string_view("/flash_attn/"),   std::string_view("/diffusers/"),
};

}  // namespace

std::span<const OwnerRule> owner_rules() { return kRules; }

bool is_python(const Frame& frame) {
  const std::string_view file = frame.file;
  return file.ends_with(".py") || file.starts_with('<') || file.ends_with(".pyx");
}

bool is_own(const Frame& frame) {
  if (!is_python(frame)) return false;
  if (frame.file.starts_with('<')) return frame.file.starts_with("<ipython") || frame.file == "<stdin>";
  std::string path = "/" + frame.file;
  std::ranges::replace(path, '\\', '/');
  return std::ranges::none_of(kLibraryPaths, [&](std::string_view part) { return path.find(part) != path.npos; });
}

bool matches(const OwnerRule& rule, std::string_view path, std::string_view function) {
  if (!rule.file.empty() && path.find(rule.file) == path.npos) return false;
  std::string_view text = rule.function;
  if (text.empty()) return true;
  const bool open_begin = text.starts_with('*'), open_end = text.ends_with('*');
  if (open_begin) text.remove_prefix(1);
  if (open_end) text.remove_suffix(1);
  // One '*' inside stands for anything too: "*clip*grad*".
  const std::size_t middle = text.find('*');
  const std::string_view first = text.substr(0, middle);
  const std::string_view second = middle == text.npos ? std::string_view() : text.substr(middle + 1);
  const std::size_t at = function.find(first);
  if (at == function.npos || (!open_begin && at != 0)) return false;
  if (middle != text.npos) {
    const std::size_t then = function.find(second, at + first.size());
    return then != function.npos && (open_end || then + second.size() == function.size());
  }
  return open_end || (open_begin ? function.ends_with(first) : function == first);
}

}  // namespace ullage::trace
