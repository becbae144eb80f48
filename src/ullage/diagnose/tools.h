// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the program that a message comes from. Its remedies are then its own options, variables and calls: what helps
// in a training script is of no use to a person who serves a model.

#include "ullage/trace/recording/out_of_memory.h"

#include <array>
#include <span>
#include <string_view>

namespace ullage::diagnose {

enum class Tool {
  None,  // none that is known: the person's own script
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

// Looks for words in the message; if it has none, in the lines before it and in the file names of its traceback.
Tool tool_of(const trace::OutOfMemory& message);

// Returns false for a PyTorch training script and for what runs one (DeepSpeed, Ray, a scheduler, a container, a
// notebook), true for any other tool.
bool serves(Tool tool);

// A setting of one tool.
struct ToolAdvice {
  Tool tool;
  std::string_view id;
  enum class For { Device, Host, Any } what;  // which memory it saves
  std::string_view action;
  std::string_view why;
};
// Returns the settings of all tools; those of one tool in the order in which to try them.
std::span<const ToolAdvice> tool_advice();

// Returns whether this cause is about the host's memory rather than a device's.
bool is_of_host(std::string_view cause);

}  // namespace ullage::diagnose
