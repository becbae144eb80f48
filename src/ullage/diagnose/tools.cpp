// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/tools.h"

#include "ullage/diagnose/signs.h"

#include <algorithm>
#include <string>

namespace ullage::diagnose {
namespace {

struct ToolWord {
  Tool tool;
  std::string_view text;  // lower case
};

// More specific tools first, because the first match counts: a server may use PyTorch and run in a container.
constexpr ToolWord kToolWords[] = {
    {Tool::Vllm, "vllm"},
    {Tool::Vllm, "cumem_allocator"},
    {Tool::Vllm, "gpu memory utilization"},
    {Tool::Vllm, "gpu-memory-utilization"},
    {Tool::Vllm, "gpu_memory_utilization"},
    {Tool::Vllm, "max-model-len"},
    {Tool::Vllm, "max_model_len"},
    {Tool::Sglang, "sglang"},
    {Tool::Sglang, "mem-fraction-static"},
    {Tool::Sglang, "mem_fraction_static"},
    {Tool::Ollama, "ollama"},
    {Tool::Ollama, "model requires more system memory"},
    {Tool::LlamaCpp, "ggml"},
    {Tool::LlamaCpp, "llama-cli"},
    {Tool::LlamaCpp, "llama-server"},
    {Tool::LlamaCpp, "llama_model"},
    {Tool::LlamaCpp, "llama_context"},
    {Tool::LlamaCpp, "llama.cpp"},
    {Tool::ComfyUi, "comfy"},
    {Tool::ComfyUi, "ksampler"},
    {Tool::ComfyUi, "got an oom, unloading all loaded models"},
    {Tool::ComfyUi, "prompt executed in"},
    {Tool::ComfyUi, "exception during processing"},
    {Tool::Mlx, "mlx"},
    {Tool::Mlx, "[metal]"},
    {Tool::Mlx, "metal::malloc"},
    {Tool::Mlx, "kiogpucommandbuffer"},
    {Tool::OnnxRuntime, "onnxruntime"},
    {Tool::WebGpu, "webgpu"},
    {Tool::WebGpu, "requiredlimits"},
    {Tool::WebGpu, "maximum binding size"},
    {Tool::Vulkan, "vulkan"},
    {Tool::Vulkan, "vkallocatememory"},
    {Tool::Vulkan, "vk_error"},
    {Tool::TensorRt, "[trt]"},
    {Tool::TensorRt, "tensorrt"},
    {Tool::Diffusers, "diffusers"},
    {Tool::Jax, "jax"},
    {Tool::Jax, "xla"},
    {Tool::TensorFlow, "tensorflow"},
    {Tool::DeepSpeed, "deepspeed"},
    {Tool::Node, "javascript heap"},
    {Tool::Java, "java.lang"},
    {Tool::Ray, "ray::"},
    {Tool::Ray, "ray.exceptions"},
    {Tool::Ray, "node running low on memory"},
    {Tool::Slurm, "slurm"},
    {Tool::Kubernetes, "oomkilled"},
    {Tool::Kubernetes, "kubernetes"},
    {Tool::Kubernetes, "kubectl"},
    {Tool::Docker, "docker"},
    {Tool::Notebook, "jupyter"},
    {Tool::Notebook, "appears to have died"},
    {Tool::Notebook, "kernel crashed"},
    {Tool::Notebook, "after using all available ram"},
};

Tool tool_in(std::string_view text) {
  const std::string words = lower(text);
  const auto found = std::ranges::find_if(
      kToolWords, [&](const ToolWord& word) { return words.find(word.text) != std::string::npos; });
  return found != std::end(kToolWords) ? found->tool : Tool::None;
}

using For = ToolAdvice::For;

constexpr ToolAdvice kToolAdvice[] = {
    {Tool::Vllm, "vllm_max_model_len", For::Device, "--max-model-len N (max_model_len): a shorter longest sequence",
     "one request of that length must fit into the KV cache; where the message names an estimated maximum, take that"},
    {Tool::Vllm, "vllm_utilization", For::Device,
     "--gpu-memory-utilization (gpu_memory_utilization): higher where the KV cache does not fit, lower where anything "
     "else fails (CUDA graphs, sampling, another process; for RL vllm_gpu_memory_util)",
     "it is the share of the card that the engine takes as a whole"},
    {Tool::Vllm, "vllm_sequences", For::Device,
     "--max-num-seqs N, --max-num-batched-tokens N: fewer at once; prompt_logprobs off",
     "activations and the logits of a step grow with them"},
    {Tool::Vllm, "vllm_eager", For::Device, "--enforce-eager, or fewer sizes: no CUDA graphs",
     "captured graphs take 1 to 3 GiB beside the KV cache"},
    {Tool::Vllm, "vllm_smaller", For::Device,
     "--kv-cache-dtype fp8, a quantized model, or --tensor-parallel-size N over several cards", ""},
    {Tool::Sglang, "sglang_mem_fraction", For::Device,
     "--mem-fraction-static: lower (0.8, 0.7) where activations or CUDA graphs fail, higher where the KV cache is too "
     "small",
     "it is the share for weights and KV cache alone"},
    {Tool::Sglang, "sglang_chunk", For::Device,
     "--chunked-prefill-size 2048, --max-running-requests N, --cuda-graph-max-bs N, --context-length N", ""},
    {Tool::Sglang, "sglang_parallel", For::Device,
     "--tp N (tensor parallel over several cards), a quantized model, or CPU offload (--cpu-offload-gb N, "
     "--dit-cpu-offload)",
     ""},
    {Tool::LlamaCpp, "llama_layers", For::Device,
     "-ngl N (--n-gpu-layers): fewer layers on the card, the rest on the CPU", ""},
    {Tool::LlamaCpp, "llama_context", For::Device,
     "-c N (--ctx-size): a shorter context; -np 1; -fa with -ctk q8_0 -ctv q8_0 for a smaller KV cache", ""},
    {Tool::LlamaCpp, "llama_batch", For::Device, "-ub 256 -b 512 (--ubatch-size): smaller compute buffers; --no-warmup",
     ""},
    {Tool::LlamaCpp, "llama_buffer", For::Device,
     "where one buffer is too large: UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 (SYCL, above 4 GB), "
     "GGML_VK_FORCE_MAX_ALLOCATION_SIZE (Vulkan), --split-mode row or --tensor-split",
     "drivers limit one allocation, however much is free"},
    {Tool::LlamaCpp, "llama_quantization", For::Any, "a smaller quantization (Q4_K_M, IQ4_XS) or a smaller model", ""},
    {Tool::LlamaCpp, "llama_host", For::Host,
     "GGML_CUDA_NO_PINNED=1 where pinned memory fails; mmap left on (no --no-mmap, no --mlock)",
     "pinned memory is limited, by WSL2 to a part of the machine's"},
    {Tool::Ollama, "ollama_host", For::Host,
     "a smaller model or quantization, or more memory: of the machine, or of the container or VM (Docker Desktop's "
     "setting, docker run --memory)",
     "it compares what the model needs with what the system says is available"},
    {Tool::Ollama, "ollama_context", For::Any,
     "a shorter context: num_ctx or OLLAMA_CONTEXT_LENGTH; OLLAMA_NUM_PARALLEL=1, OLLAMA_MAX_LOADED_MODELS=1", ""},
    {Tool::Ollama, "ollama_cache", For::Device, "OLLAMA_FLASH_ATTENTION=1 with OLLAMA_KV_CACHE_TYPE=q8_0", ""},
    {Tool::Ollama, "ollama_layers", For::Device,
     "num_gpu N: fewer layers on the card; OLLAMA_GPU_OVERHEAD for a margin", ""},
    {Tool::ComfyUi, "comfyui_offload", For::Device,
     "--lowvram (or --novram), --reserve-vram N; CPU offload in the loader node; unload models between the stages", ""},
    {Tool::ComfyUi, "comfyui_tiled", For::Device, "VAE Decode (Tiled) in place of VAE Decode", ""},
    {Tool::ComfyUi, "comfyui_smaller", For::Any,
     "fp8 or GGUF weights; a lower resolution, fewer frames, batch 1; fewer blocks kept, more blocks to swap", ""},
    {Tool::ComfyUi, "comfyui_host", For::Host,
     "more RAM or a larger swap or page file; --disable-pinned-memory, --cache-none; models on a disk that is fast",
     "models that leave the card stand in the machine's memory"},
    {Tool::ComfyUi, "comfyui_update", For::Any, "update ComfyUI, its nodes and the driver",
     "its memory manager changed with almost every release"},
    {Tool::Diffusers, "diffusers_offload", For::Any,
     "pipe.enable_model_cpu_offload() (or enable_sequential_cpu_offload(), or group offloading)", ""},
    {Tool::Diffusers, "diffusers_tiling", For::Device, "pipe.vae.enable_tiling() and pipe.vae.enable_slicing()", ""},
    {Tool::Diffusers, "diffusers_smaller", For::Any,
     "quantized weights, fewer frames, a lower resolution, num_images_per_prompt=1", ""},
    {Tool::Mlx, "mlx_prompt", For::Any,
     "a shorter prompt or smaller prefill chunks (--prefill-step-size 512, --max-num-batched-tokens), a quantized KV "
     "cache",
     "attention over a long prompt makes one large buffer"},
    {Tool::Mlx, "mlx_cache", For::Any,
     "mx.set_cache_limit(N) and mx.clear_cache(); MLX_MAX_MB_PER_BUFFER for shorter command buffers", ""},
    {Tool::Mlx, "mlx_wired", For::Any, "sudo sysctl iogpu.wired_limit_mb=N; close other programs; a smaller model",
     "macOS gives the GPU two thirds to three quarters of the memory"},
    {Tool::Mlx, "mlx_update", For::Any, "upgrade mlx and what is built on it", "several releases mended such errors"},
    {Tool::WebGpu, "webgpu_limits", For::Any,
     "requestDevice({requiredLimits: {maxBufferSize, maxStorageBufferBindingSize}}) with adapter.limits",
     "the defaults "
     "are 256 and 128 MiB, however much the card has"},
    {Tool::WebGpu, "webgpu_smaller", For::Any,
     "a smaller input (resolution, resize, tile), a quantized model (dtype q8 or fp16), or a buffer split in parts",
     ""},
    {Tool::OnnxRuntime, "onnx_input", For::Any,
     "a smaller input (resolution, resize, tile, batch), a quantized model, fewer execution threads", ""},
    {Tool::OnnxRuntime, "onnx_arena", For::Device,
     "gpu_mem_limit and arena_extend_strategy=kSameAsRequested of the CUDA provider; cudnn_conv_use_max_workspace=0",
     ""},
    {Tool::Vulkan, "vulkan_limits", For::Any,
     "smaller tiles or batches; keep below maxMemoryAllocationSize; a newer driver or release",
     "one allocation has a limit, and an integrated card a small heap of its own"},
    {Tool::TensorRt, "tensorrt_workspace", For::Any,
     "config.set_memory_pool_limit(WORKSPACE, N), trtexec --memPoolSize=workspace:N: larger where no implementation is "
     "found, smaller where it does not fit; free memory of the card while building",
     ""},
    {Tool::Jax, "jax_preallocation", For::Any,
     "XLA_PYTHON_CLIENT_PREALLOCATE=false or XLA_PYTHON_CLIENT_MEM_FRACTION=.7; end other processes of the device",
     "JAX takes three quarters of the card at its start"},
    {Tool::Jax, "jax_remat", For::Device,
     "jax.checkpoint (remat), donate_argnums, lax.map or a smaller batch; delete arrays that are not needed (del, "
     "jax.clear_caches())",
     ""},
    {Tool::Jax, "jax_sharding", For::Device, "shard over more devices (jax.sharding), or bfloat16", ""},
    {Tool::TensorFlow, "tensorflow_growth", For::Device,
     "tf.config.experimental.set_memory_growth(gpu, True); a smaller batch; mixed_float16", ""},
    {Tool::DeepSpeed, "deepspeed_offload", For::Host,
     "no offload_optimizer or offload_param to the CPU, or to NVMe; pin_memory false; fewer ranks load at once",
     "what ZeRO offloads stands in the machine's memory, once for each rank until it is cut"},
    {Tool::DeepSpeed, "deepspeed_stage", For::Device,
     "ZeRO stage 3, offload_optimizer and offload_param to the CPU, gradient checkpointing, a smaller micro batch", ""},
    {Tool::Node, "node_heap", For::Any, "NODE_OPTIONS=--max-old-space-size=8192",
     "V8 limits its heap to 2 to 4 GB, however much the machine has"},
    {Tool::Java, "java_heap", For::Any, "-Xmx8g (JAVA_OPTS, _JAVA_OPTIONS); in a container -XX:MaxRAMPercentage=75",
     "the virtual machine limits its heap to a quarter of the memory unless told otherwise"},
    {Tool::Ray, "ray_memory", For::Host,
     "fewer tasks at once (num_cpus or memory of each), smaller buffers (replay, rollout, batch) and offload to disk; "
     "RAY_memory_usage_threshold=0.98",
     "Ray kills the largest task when the node's memory is 95 % full"},
    {Tool::Slurm, "slurm_mem", For::Any,
     "#SBATCH --mem=64G (or --mem-per-cpu); sacct -j ID --format=MaxRSS,ReqMem tells",
     "the job is killed at what it asked for, not at what the node has"},
    {Tool::Kubernetes, "kubernetes_limit", For::Any,
     "a higher resources.limits.memory (and requests.memory) of the container",
     "the container is killed at its limit, whatever the node has"},
    {Tool::Docker, "docker_limit", For::Any, "docker run --memory=16g (Docker Desktop: its VM's memory), --shm-size=8g",
     ""},
    {Tool::Notebook, "notebook_runtime", For::Any,
     "a runtime with more RAM; work in parts (chunks, generators, del and gc.collect()), smaller dtypes", ""},
};

}  // namespace

Tool tool_of(const trace::OutOfMemory& message) {
  if (const Tool said = tool_in(message.text); said != Tool::None) return said;
  std::string around;
  for (const trace::Frame& frame : message.traceback) around += frame.file + '\n';
  for (const std::string& line : message.before) around += line + '\n';
  return tool_in(around);
}

bool serves(Tool tool) {
  constexpr std::array kTrain = {Tool::None,       Tool::DeepSpeed, Tool::Ray,     Tool::Slurm,
                                 Tool::Kubernetes, Tool::Docker,    Tool::Notebook};
  return std::ranges::find(kTrain, tool) == kTrain.end();
}

std::span<const ToolAdvice> tool_advice() { return kToolAdvice; }

bool is_of_host(std::string_view cause) { return cause == "host_memory" || cause == "shared_memory"; }

}  // namespace ullage::diagnose
