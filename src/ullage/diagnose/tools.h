// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the program that a message or a recording comes from. For a message the remedies are then options, variables
// and calls of that tool. A person who serves a model has no training script to change.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/recording/out_of_memory.h"
#include "ullage/trace/recording/stacks.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ullage::diagnose {

enum class Tool {
  None,  // none that is known: the person's own script
  Torch,
  Vllm,
  Sglang,
  Tgi,
  Lmdeploy,
  TensorRtLlm,
  ExLlama,
  KoboldCpp,
  Whisper,
  LmStudio,
  Ollama,
  StableDiffusionCpp,
  LlamaCpp,
  ComfyUi,
  Diffusers,
  SdScripts,
  WebUi,
  Mlx,
  OnnxRuntime,
  WebGpu,
  DirectMl,
  Vulkan,
  TensorRt,
  Paddle,
  Jax,
  TensorFlow,
  Splatting,
  Volumes,
  Ultralytics,
  LmTrainer,
  Megatron,
  Verl,
  Trl,
  DeepSpeed,
  Fsdp,
  Ddp,
  Transformers,
  IsaacSim,
  Triton,
  Nccl,
  Python,
  Node,
  Java,
  Php,
  Dask,
  DuckDb,
  ClickHouse,
  Boosting,
  Rapids,
  Ray,
  Slurm,
  Workflow,
  Kubernetes,
  Docker,
  Hosting,
  Notebook,
  Kernel,
  Ullage,
};

struct Speaker {
  Tool tool = Tool::None;
  std::string seen;  // what showed it: "\"vllm\" in the traceback"; empty for None
};

// Looks for words in the message, then in its traceback, then in the lines before it, then in those after it. The first
// of these texts that names a tool counts; of several tools in it, the first in the table (tools.cpp). If that tool is
// a library (llama.cpp) and a later text names a program built on it (Ollama), the program counts. If no text names a
// tool, the wording itself decides: only PyTorch says "CUDA out of memory. Tried to allocate".
Speaker speaker_of(const trace::OutOfMemory& message);
// PyTorch made the recording; a tool that runs PyTorch is known by the files in its stacks.
Speaker speaker_of(const trace::Stacks& stacks);

// Returns the fact for a diagnosis; none for Tool::None.
std::optional<Spoken> spoken(const Speaker& speaker);

// Returns whether the person has a program with settings rather than a training script to change: a server, a UI,
// another framework, a trainer of Gaussians. False for PyTorch and for what else trains with it or runs a script:
// DeepSpeed, Ray, a scheduler, a container, a notebook. False too for Python, Triton, NCCL, the kernel and Ullage.
bool serves(Tool tool);

// Returns whether a program of this kind runs PyTorch, so that its files stand in PyTorch's stacks.
bool runs_torch(Tool tool);

// A setting of one tool.
struct ToolAdvice {
  Tool tool;
  std::string_view id;
  enum class For { Device, Host, Any } what;  // which memory it saves
  std::string_view action;
  std::string_view why;
  std::array<std::string_view, 4> causes{};  // ids of the only causes that it is for; empty: any cause of `what`
};
// Returns the settings of all tools, in two families: of programs that serve or run a model, and of frameworks,
// trainers, data engines and machines. Those of one tool stand in the order in which to try them.
std::array<std::span<const ToolAdvice>, 2> tool_advice();
std::span<const ToolAdvice> serving_advice();
std::span<const ToolAdvice> framework_advice();

// Returns whether this cause is about the host's memory rather than a device's.
bool is_of_host(std::string_view cause);

}  // namespace ullage::diagnose
