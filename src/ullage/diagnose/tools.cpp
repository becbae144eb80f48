// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/tools.h"

#include "ullage/diagnose/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ullage::diagnose {
namespace {

using trace::Teller;

struct ToolName {
  Tool tool;
  std::string_view id;
  std::string_view name;
  bool serves;           // what serves() returns (tools.h)
  Tool on = Tool::None;  // the library that it is built on; None if there is none, or it prints no messages of its own
};

constexpr ToolName kToolNames[] = {
    {Tool::Torch, "torch", "PyTorch", false},
    {Tool::Vllm, "vllm", "vLLM", true},
    {Tool::Sglang, "sglang", "SGLang", true},
    {Tool::Tgi, "tgi", "text-generation-inference", true},
    {Tool::Lmdeploy, "lmdeploy", "LMDeploy", true},
    {Tool::TensorRtLlm, "tensorrt-llm", "TensorRT-LLM", true},
    {Tool::ExLlama, "exllama", "ExLlama", true},
    {Tool::KoboldCpp, "koboldcpp", "KoboldCpp", true, Tool::LlamaCpp},
    {Tool::Whisper, "whisper", "Whisper", true},
    {Tool::LmStudio, "lmstudio", "LM Studio", true, Tool::LlamaCpp},
    {Tool::Ollama, "ollama", "Ollama", true, Tool::LlamaCpp},
    {Tool::StableDiffusionCpp, "stable-diffusion.cpp", "stable-diffusion.cpp", true, Tool::LlamaCpp},
    {Tool::LlamaCpp, "llama.cpp", "llama.cpp", true},
    {Tool::ComfyUi, "comfyui", "ComfyUI", true},
    {Tool::Diffusers, "diffusers", "diffusers", true},
    {Tool::SdScripts, "sd-scripts", "a trainer of diffusion models", false},
    {Tool::WebUi, "webui", "a web UI for diffusion models", true},
    {Tool::Mlx, "mlx", "MLX", true},
    {Tool::OnnxRuntime, "onnxruntime", "ONNX Runtime", true},
    {Tool::WebGpu, "webgpu", "WebGPU", true},
    {Tool::DirectMl, "directml", "DirectML", true},
    {Tool::Vulkan, "vulkan", "Vulkan", true},
    {Tool::TensorRt, "tensorrt", "TensorRT", true},
    {Tool::Paddle, "paddle", "PaddlePaddle", true},
    {Tool::Jax, "jax", "JAX", true},
    {Tool::TensorFlow, "tensorflow", "TensorFlow", true},
    {Tool::Splatting, "splatting", "a trainer of Gaussians", true},
    {Tool::Volumes, "volumes", "nnU-Net or MONAI", false},
    {Tool::Ultralytics, "ultralytics", "Ultralytics", false},
    {Tool::LmTrainer, "lm-trainer", "a trainer of language models", false},
    {Tool::Megatron, "megatron", "Megatron", false},
    {Tool::Verl, "verl", "verl", false},
    {Tool::Trl, "trl", "TRL", false},
    {Tool::DeepSpeed, "deepspeed", "DeepSpeed", false},
    {Tool::Fsdp, "fsdp", "FSDP", false},
    {Tool::Ddp, "ddp", "DistributedDataParallel", false},
    {Tool::Transformers, "transformers", "the Trainer of transformers", false},
    {Tool::IsaacSim, "isaac", "a simulator (Isaac)", false},
    {Tool::Triton, "triton", "Triton", false},
    {Tool::Nccl, "nccl", "NCCL", false},
    {Tool::Python, "python", "Python", false},
    {Tool::Node, "node", "Node", true},
    {Tool::Java, "java", "Java", true},
    {Tool::Php, "php", "PHP", true},
    {Tool::Dask, "dask", "Dask", true},
    {Tool::DuckDb, "duckdb", "DuckDB", true},
    {Tool::ClickHouse, "clickhouse", "ClickHouse", true},
    {Tool::Boosting, "boosting", "a library of boosted trees", true},
    {Tool::Rapids, "rapids", "RAPIDS", true},
    {Tool::Ray, "ray", "Ray", false},
    {Tool::Slurm, "slurm", "Slurm", false},
    {Tool::Workflow, "workflow", "a workflow engine", false},
    {Tool::Kubernetes, "kubernetes", "Kubernetes", false},
    {Tool::Docker, "docker", "Docker", false},
    {Tool::Hosting, "hosting", "a hosting service", true},
    {Tool::Notebook, "notebook", "a notebook", false},
    {Tool::Kernel, "kernel", "the kernel", false},
    {Tool::Ullage, "ullage", "Ullage", false},
};

const ToolName* name_of(Tool tool) {
  const auto found = std::ranges::find(kToolNames, tool, &ToolName::tool);
  return found == std::end(kToolNames) ? nullptr : found;
}

struct ToolWord {
  Tool tool;
  std::string_view text;  // lower case
};

// More specific tools first, because the first row counts whose word is anywhere in the text: a server may use PyTorch
// and run in a container. A word of at most four letters counts only if no letter or digit stands beside it: "mlx" is
// not found in "mlx5_0", a network card.
constexpr ToolWord kToolWords[] = {
    {Tool::Triton, "triton.runtime.errors"},
    {Tool::Triton, "no valid triton configs"},
    {Tool::Triton, "outofresources"},
    {Tool::Splatting, "gaussian-splatting"},
    {Tool::Splatting, "gaussian_splatting"},
    {Tool::Splatting, "diff_gaussian_raster"},
    {Tool::Splatting, "rasterize_gaussians"},
    {Tool::Splatting, "splatfacto"},
    {Tool::Splatting, "nerfstudio"},
    {Tool::Splatting, "gsplat"},
    {Tool::Volumes, "nnunet"},
    {Tool::Volumes, "monai"},
    {Tool::Ultralytics, "ultralytics"},
    {Tool::Ultralytics, "taskalignedassigner"},
    {Tool::LmTrainer, "llamafactory"},
    {Tool::LmTrainer, "llama-factory"},
    {Tool::LmTrainer, "llmtuner"},
    {Tool::LmTrainer, "axolotl"},
    {Tool::LmTrainer, "unsloth"},
    {Tool::LmTrainer, "ms-swift"},
    {Tool::LmTrainer, "swift sft"},
    {Tool::LmTrainer, "swift/llm"},
    {Tool::LmTrainer, "torchtune"},
    {Tool::Verl, "verl"},
    {Tool::Verl, "openrlhf"},
    {Tool::Trl, "trl"},
    {Tool::Vllm, "vllm"},
    {Tool::Vllm, "cumem_allocator"},
    {Tool::Vllm, "mamba cache blocks"},
    {Tool::Vllm, "gpu memory utilization"},
    {Tool::Vllm, "gpu-memory-utilization"},
    {Tool::Vllm, "gpu_memory_utilization"},
    {Tool::Vllm, "max-model-len"},
    {Tool::Vllm, "max_model_len"},
    {Tool::Sglang, "sglang"},
    {Tool::Sglang, "mem-fraction-static"},
    {Tool::Sglang, "mem_fraction_static"},
    {Tool::Tgi, "text-generation-launcher"},
    {Tool::Tgi, "text_generation_launcher"},
    {Tool::Tgi, "text_generation_server"},
    {Tool::Tgi, "text-generation-inference"},
    {Tool::Tgi, "text-embeddings-router"},
    {Tool::Lmdeploy, "lmdeploy"},
    {Tool::Lmdeploy, "turbomind"},
    {Tool::Lmdeploy, "[tm][error]"},
    {Tool::TensorRtLlm, "tensorrt-llm"},
    {Tool::TensorRtLlm, "tensorrt_llm"},
    {Tool::TensorRtLlm, "trtllm"},
    {Tool::ExLlama, "exllama"},
    {Tool::ExLlama, "tabbyapi"},
    {Tool::KoboldCpp, "koboldcpp"},
    {Tool::KoboldCpp, "koboldai"},
    {Tool::SdScripts, "sd-scripts"},
    {Tool::SdScripts, "kohya"},
    {Tool::SdScripts, "sdxl_train"},
    {Tool::SdScripts, "flux_train"},
    {Tool::SdScripts, "train_network.py"},
    {Tool::SdScripts, "musubi"},
    {Tool::SdScripts, "simpletuner"},
    {Tool::SdScripts, "onetrainer"},
    {Tool::SdScripts, "ai-toolkit"},
    {Tool::SdScripts, "diffusion-pipe"},
    {Tool::WebUi, "stable-diffusion-webui"},
    {Tool::WebUi, "sd-webui"},
    {Tool::WebUi, "webui-forge"},
    {Tool::WebUi, "forge_inference"},
    {Tool::WebUi, "fooocus"},
    {Tool::WebUi, "invokeai"},
    {Tool::WebUi, "sdnext"},
    {Tool::WebUi, "wan2gp"},
    {Tool::WebUi, "framepack"},
    {Tool::LmStudio, "lmstudio"},
    {Tool::LmStudio, "lm studio"},
    {Tool::LmStudio, "lm-studio"},
    {Tool::LmStudio, "model loading guardrails"},
    {Tool::Ollama, "ollama"},
    {Tool::Ollama, "model requires more system memory"},
    {Tool::StableDiffusionCpp, "stable-diffusion.cpp"},
    {Tool::StableDiffusionCpp, "stablediffusion-ggml"},
    {Tool::StableDiffusionCpp, "ggml_extend"},
    {Tool::StableDiffusionCpp, "sd-cli"},
    {Tool::StableDiffusionCpp, "sd-server"},
    {Tool::StableDiffusionCpp, "vae compute buffer"},
    {Tool::StableDiffusionCpp, "sampling completed, taking"},
    {Tool::LlamaCpp, "ggml"},
    {Tool::LlamaCpp, "llama-cli"},
    {Tool::LlamaCpp, "llama-server"},
    {Tool::LlamaCpp, "llama_model"},
    {Tool::LlamaCpp, "llama_context"},
    {Tool::LlamaCpp, "llama.cpp"},
    {Tool::LlamaCpp, "llama_params_fit"},
    {Tool::ComfyUi, "comfy"},
    {Tool::ComfyUi, "ksampler"},
    {Tool::ComfyUi, "error occurred when executing"},
    {Tool::ComfyUi, "exception message:** allocation"},
    {Tool::ComfyUi, "exception message: allocation"},
    {Tool::ComfyUi, "got an oom, unloading all loaded models"},
    {Tool::ComfyUi, "prompt executed in"},
    {Tool::ComfyUi, "exception during processing"},
    {Tool::Mlx, "mlx"},
    {Tool::Mlx, "vmlx"},
    {Tool::Mlx, "omlx"},
    {Tool::Mlx, "[metal]"},
    {Tool::Mlx, "metal::malloc"},
    {Tool::Mlx, "kiogpucommandbuffer"},
    {Tool::DirectMl, "directml"},
    {Tool::DirectMl, "dmlexecutionprovider"},
    {Tool::DirectMl, "not enough gpu video memory"},
    {Tool::OnnxRuntime, "onnxruntime"},
    {Tool::WebGpu, "webgpu"},
    {Tool::WebGpu, "requiredlimits"},
    {Tool::WebGpu, "maximum binding size"},
    {Tool::Vulkan, "vulkan"},
    {Tool::Vulkan, "vkallocatememory"},
    {Tool::Vulkan, "vk_error"},
    {Tool::TensorRt, "[trt]"},
    {Tool::TensorRt, "tensorrt"},
    {Tool::Whisper, "whisper"},
    {Tool::Whisper, "ctranslate2"},
    {Tool::Diffusers, "diffusers"},
    {Tool::Diffusers, "fluxpipeline"},
    {Tool::Diffusers, "diffusionpipeline"},
    {Tool::Diffusers, "diffusionxlpipeline"},
    {Tool::Diffusers, "wanpipeline"},
    {Tool::Paddle, "paddle"},
    {Tool::Jax, "jax"},
    {Tool::Jax, "jaxlib"},
    {Tool::Jax, "xla"},
    {Tool::TensorFlow, "tensorflow"},
    {Tool::DeepSpeed, "deepspeed"},
    {Tool::DeepSpeed, "sigkill_handler"},  // its launcher
    {Tool::Megatron, "megatron"},
    {Tool::Fsdp, "fsdp"},
    {Tool::Fsdp, "fully_sharded_data_parallel"},
    {Tool::Fsdp, "fullyshardeddataparallel"},
    {Tool::Transformers, "transformers/trainer.py"},
    {Tool::Transformers, "transformers\\trainer.py"},
    {Tool::Ddp, "distributeddataparallel"},
    {Tool::Ddp, "nn/parallel/distributed.py"},
    {Tool::Nccl, "nccl warn"},
    {Tool::Nccl, "ncclsystemerror"},
    {Tool::Nccl, "ncclunhandledcudaerror"},
    {Tool::IsaacSim, "isaacgym"},
    {Tool::IsaacSim, "isaacsim"},
    {Tool::IsaacSim, "isaaclab"},
    {Tool::IsaacSim, "isaac_lab"},
    {Tool::IsaacSim, "omni.physx"},
    {Tool::Node, "javascript heap"},
    {Tool::Java, "java.lang"},
    {Tool::Java, "java heap"},
    {Tool::Java, "jvm"},
    {Tool::Php, ".php on line"},
    {Tool::Java, "executorlost"},  // Spark
    {Tool::Java, "spark.executor"},
    {Tool::DuckDb, "duckdb"},
    {Tool::ClickHouse, "clickhouse"},
    {Tool::ClickHouse, "db::exception"},
    {Tool::ClickHouse, "overcommittracker"},
    {Tool::Boosting, "xgboost"},
    {Tool::Boosting, "catboost"},
    {Tool::Boosting, "ncudalib::"},
    {Tool::Boosting, "memory allocation error on worker"},  // XGBoost
    {Tool::Boosting, "lightgbm"},
    {Tool::Rapids, "cuda_memory_resource"},
    {Tool::Rapids, "librmm"},
    {Tool::Rapids, "cudf"},
    {Tool::Rapids, "cuml"},
    {Tool::Dask, "distributed.nanny"},
    {Tool::Dask, "distributed.worker"},
    {Tool::Ray, "ray::"},
    {Tool::Ray, "ray.exceptions"},
    {Tool::Ray, "node running low on memory"},
    {Tool::Ray, "(raylet)"},
    {Tool::Slurm, "slurm"},
    {Tool::Slurm, "sbatch"},
    {Tool::Workflow, "nextflow"},
    {Tool::Workflow, "snakemake"},
    {Tool::Workflow, "error executing process"},
    {Tool::Workflow, "terminated with an error exit status"},  // Nextflow
    {Tool::Kubernetes, "oomkilled"},
    {Tool::Kubernetes, "kubernetes"},
    {Tool::Kubernetes, "kubectl"},
    {Tool::Kubernetes, "kubepods"},
    {Tool::Docker, "docker"},
    {Tool::Docker, "container oom"},
    {Tool::Docker, "mem_limit="},
    {Tool::Hosting, "runtime.exiterror"},
    {Tool::Hosting, "memory quota"},
    {Tool::Docker, " exited with code 137"},  // docker compose, after the container's name
    {Tool::Notebook, "jupyter"},
    {Tool::Notebook, "ipykernel"},
    {Tool::Notebook, "appears to have died"},
    {Tool::Notebook, "kernel crashed"},
    {Tool::Notebook, "after using all available ram"},
    {Tool::Kernel, "oom-killer"},
    {Tool::Kernel, "oom-kill:constraint"},
    {Tool::Kernel, "oom_reaper"},
    {Tool::Kernel, "out of memory: kill"},
};

bool has_word(std::string_view text, std::string_view word) {
  constexpr std::size_t kShort = 4;
  const auto letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if (word.size() > kShort || ((at == 0 || !letter(at - 1)) && !letter(at + word.size()))) return true;
  }
  return false;
}

// Returns the first tool of the table that the text names; `where` says in words which text it is.
Speaker speaker_in(std::string_view text, const char* where) {
  const std::string words = lower(text);
  const auto found = std::ranges::find_if(kToolWords, [&](const ToolWord& word) { return has_word(words, word.text); });
  if (found == std::end(kToolWords)) return {};
  return {found->tool, fmt::format("\"{}\" in the {}", found->text, where)};
}

struct ToolForm {
  Tool tool;
  std::string_view form;  // the beginning of OutOfMemory::form
};

constexpr ToolForm kToolForms[] = {
    {Tool::Mlx, "metal-insufficient"},
    {Tool::Mlx, "metal-malloc"},
    {Tool::Mlx, "metal-ceiling"},
    {Tool::OnnxRuntime, "onnxruntime"},
    {Tool::WebGpu, "webgpu"},
    {Tool::Whisper, "ctranslate2"},
    {Tool::ComfyUi, "pinned-buffer"},
    {Tool::WebUi, "pinned-budget"},
    {Tool::ExLlama, "exllama"},
    {Tool::Kernel, "worker"},
    {Tool::Jax, "on-chip-tpu"},
    {Tool::Vulkan, "vulkan"},
    {Tool::DirectMl, "directml"},
    {Tool::TensorRt, "tensorrt"},
    {Tool::OnnxRuntime, "wasm-heap"},
    {Tool::TensorFlow, "tensorflow"},
    {Tool::ComfyUi, "comfyui"},
    {Tool::Sglang, "sglang"},
    {Tool::Tgi, "tgi"},
    {Tool::WebUi, "webui-attention"},
    {Tool::LlamaCpp, "ggml"},
    {Tool::Ollama, "ollama"},
    {Tool::Triton, "on-chip-memory"},
    {Tool::Python, "numpy"},
    {Tool::Python, "memory-error"},
    {Tool::Node, "node"},
    {Tool::Java, "java"},
    {Tool::Php, "php-limit"},
    {Tool::DuckDb, "duckdb"},
    {Tool::ClickHouse, "clickhouse"},
    {Tool::ClickHouse, "db::exception"},
    {Tool::ClickHouse, "overcommittracker"},
    {Tool::Boosting, "xgboost"},
    {Tool::Boosting, "catboost"},
    {Tool::Boosting, "ncudalib::"},
    {Tool::Boosting, "memory allocation error on worker"},  // XGBoost
    {Tool::Boosting, "lightgbm"},
    {Tool::Rapids, "cuda-rmm"},
    {Tool::Slurm, "slurm"},
    {Tool::Ray, "ray"},
    {Tool::Hosting, "hosting"},
    {Tool::LmStudio, "lmstudio"},
    {Tool::Paddle, "paddle"},
    {Tool::Kubernetes, "container-oom-killed"},
    {Tool::Notebook, "container-ram"},
    {Tool::Notebook, "notebook"},
    {Tool::Kernel, "kernel"},
    {Tool::Kernel, "signal-9"},
    {Tool::Kernel, "exit-137"},
    {Tool::Kernel, "killed"},
    {Tool::Torch, "torch-shm"},
    {Tool::Torch, "dataloader"},
    {Tool::Torch, "cpu"},
    {Tool::Torch, "cuda-error"},
    {Tool::Torch, "cuda-thrust"},
    {Tool::Torch, "hip-error"},
};

Speaker speaker_of_wording(const trace::OutOfMemory& message) {
  const auto found =
      std::ranges::find_if(kToolForms, [&](const ToolForm& each) { return message.form.starts_with(each.form); });
  if (found != std::end(kToolForms)) return {found->tool, "the wording"};
  switch (message.teller) {
    case Teller::Cuda:
    case Teller::CudaMallocAsync:
    case Teller::Hip:
    case Teller::Xpu:
    case Teller::Npu:
    case Teller::Mps:
    case Teller::Metal:
    case Teller::Cublas:  // PyTorch words a library's error: "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"
    case Teller::Cudnn:
    case Teller::Cusolver:
    case Teller::Cusparse:
    case Teller::Cufft:
    case Teller::Magma:
      return {Tool::Torch, "the wording"};
    case Teller::Nccl:
      return {Tool::Nccl, "the wording"};
    case Teller::Vllm:
      return {Tool::Vllm, "the wording"};
    case Teller::Ullage:
      return {Tool::Ullage, "the wording"};
    case Teller::Jax:
      return {Tool::Jax, "the wording"};
    case Teller::TensorFlow:
      return {Tool::TensorFlow, "the wording"};
    default:
      return {};
  }
}

}  // namespace

Speaker speaker_of(const trace::OutOfMemory& message) {
  const auto joined = [](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    return text;
  };
  std::string files;
  for (const trace::Frame& frame : message.traceback) files += frame.file + '\n';
  Speaker best;
  for (const Speaker& said :
       {speaker_in(message.text, "message"), speaker_in(files, "traceback"),
        speaker_in(joined(message.before), "lines before it"), speaker_in(joined(message.after), "lines after it")}) {
    if (said.tool == Tool::None) continue;
    // A library's message says less than the program around it: Ollama and LM Studio run ggml.
    if (best.tool == Tool::None || name_of(said.tool)->on == best.tool) best = said;
  }
  return best.tool == Tool::None ? speaker_of_wording(message) : best;
}

Speaker speaker_of(const trace::Stacks& stacks) {
  // The table's order decides, not the stacks', so that an answer does not depend on which stack comes first.
  const ToolWord* best = nullptr;
  for (std::uint32_t i = 0; i < stacks.frame_count(); ++i) {
    const std::string file = lower(stacks.frame(trace::FrameId{i}).file);
    for (const ToolWord& word : kToolWords) {
      if (best != nullptr && &word >= best) break;
      if (runs_torch(word.tool) && has_word(file, word.text)) best = &word;
    }
  }
  if (best == nullptr) return {Tool::Torch, "the file's kind"};
  return {best->tool, fmt::format("\"{}\" in the stacks", best->text)};
}

std::optional<Spoken> spoken(const Speaker& speaker) {
  const ToolName* name = name_of(speaker.tool);
  if (name == nullptr) return std::nullopt;
  return Spoken{std::string(name->id), std::string(name->name), speaker.seen};
}

bool serves(Tool tool) {
  const ToolName* name = name_of(tool);
  return name != nullptr && name->serves;
}

bool runs_torch(Tool tool) {
  constexpr std::array kRun = {Tool::Tgi,          Tool::Splatting, Tool::Volumes,   Tool::Ultralytics, Tool::LmTrainer,
                               Tool::Megatron,     Tool::Vllm,      Tool::Sglang,    Tool::ComfyUi,     Tool::Diffusers,
                               Tool::Verl,         Tool::Trl,       Tool::DeepSpeed, Tool::Fsdp,        Tool::Ddp,
                               Tool::Transformers, Tool::SdScripts, Tool::WebUi,     Tool::Whisper,     Tool::ExLlama,
                               Tool::IsaacSim};
  return std::ranges::find(kRun, tool) != kRun.end();
}

bool is_of_host(std::string_view cause) { return cause == "host_memory" || cause == "shared_memory"; }

}  // namespace ullage::diagnose
