// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which program speaks in a message or around it. Remedies are then said in its own words: its options, variables and
// calls. What a training script can do does not help who serves a model.

#include "ullage/trace/recording/out_of_memory.h"

#include <array>
#include <span>
#include <string_view>

namespace ullage::diagnose {

enum class Tool {
  None,  // nobody that is known: a script of one's own
  Vllm,
  Sglang,
  LlamaCpp,
  Ollama,
  ComfyUi,
  Diffusers,
  Mlx,
  OnnxRuntime,
  WebGpu,
  Vulkan,
  TensorRt,
  Jax,
  TensorFlow,
  DeepSpeed,
  Node,
  Java,
  Ray,
  Slurm,
  Kubernetes,
  Docker,
  Notebook,
};

// By words in the message, the lines before it and the files of its traceback; a word of the message itself comes
// first.
Tool tool_of(const trace::OutOfMemory& message);

// Does it run models for others, or something that is no training script of PyTorch's?
bool serves(Tool tool);

// A setting of one tool.
struct ToolAdvice {
  Tool tool;
  std::string_view id;
  enum class For { Device, Host, Any } what;  // which memory it is for
  std::string_view action;
  std::string_view why;
};
// In the order in which they are to be tried.
std::span<const ToolAdvice> tool_advice();

// Is this cause one of the host's memory? Else of a device's.
bool is_of_host(std::string_view cause);

}  // namespace ullage::diagnose
