// SPDX-License-Identifier: Apache-2.0
#pragma once

// Guesses what a program was doing from names in its stack and lines that it printed: "in an evaluation loop", "in
// optimizer.step". A sign is a hint together with the words in which it was seen, never a proof. The words to look for
// are a table in signs.cpp.

#include "ullage/trace/recording/out_of_memory.h"
#include "ullage/trace/recording/stacks.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ullage::diagnose {

enum class Sign {
  Evaluation,
  OptimizerStep,
  Backward,
  Loading,        // of a checkpoint or weights from a file
  Deserializing,  // tensors of a file are made on the device
  Loss,           // cross entropy, or the last layer of a language model, which is as wide as its vocabulary
  Attention,
  Generation,
  CacheBuffer,   // the KV cache, the buffer for the keys and values of a whole context, could not be allocated
  Gathering,     // predictions of an evaluation put together
  DataParallel,  // one process, many devices
  Distributed,   // a process for each device
  PinnedMemory,
  LoaderWorker,
  Installing,
  Moving,        // a module or tensor to the device
  FirstStep,     // a printed line shows a first step: 0 or 1, and no later epoch than 1
  LaterStep,     // a printed line shows step 20 or later, or epoch 2 or later
  DeviceAssert,  // the device reported an index or class number out of range
  RetainGraph,   // retain_graph, create_graph
  GraphCapture,  // CUDA graphs are being captured
  ReplayBuffer,
  Environments,  // a program of reinforcement learning
  Lora,
  Saving,          // of a checkpoint
  FullState,       // the state of a sharded model is put together (FSDP, ZeRO-3)
  Autocast,        // the stack shows autocast: the program runs in half precision already
  Windows,         // the operating system
  UnifiedMachine,  // the text names a machine whose host and GPU share one memory
  NoDriver,        // the driver or the card does not answer at all
  FreesOnly,       // what failed was a call that asks for no memory
  DeepCopy,        // of a model or state
  Inference,       // the program only computes results
  Training,        // the program trains
  WeightsMove,     // a module's parameters are moved to the device: nothing was computed yet
  NoGrad,          // a frame of no_grad or inference_mode: no graph is kept
  BatchOfOne,      // the text states a batch size of 1
  Checkpoints,     // activations are recomputed already (torch.utils.checkpoint)
  HalfPrecision,   // the text states that the program computes in half precision
  Growing,         // a person says that memory grows, or leaks
  EightBit,        // the optimizer's state has 8 bits already
  Count,
};

class Signs {
 public:
  // Call it for the innermost frame first, because only the first place of each sign is kept. `code` is the frame's
  // line of source, or empty.
  void look_at_frame(const trace::Frame& frame, std::string_view code);
  // Looks at a line that the program printed before the error, or at the error's own text.
  void look_at_line(std::string_view line);
  // Looks at the last line before the error, which may be source without its traceback.
  void look_at_source(std::string_view line);
  // Looks at a line below the error. There only the words of In::Below and In::Setting count (signs.cpp), unless the
  // line says when the program failed: "I always see this error during evaluation".
  void look_below(std::string_view line);

  // Returns the words in which the sign was seen ("nets/valid.py:88 validate"), or empty.
  const std::string& where(Sign sign) const { return seen_[static_cast<std::size_t>(sign)]; }
  bool has(Sign sign) const { return !where(sign).empty(); }

 private:
  void set(Sign sign, std::string words);
  std::array<std::string, static_cast<std::size_t>(Sign::Count)> seen_;
};

Signs signs_of(const trace::OutOfMemory& message);
Signs signs_of(const trace::Stacks& stacks, trace::StackId stack);

// `text` with ASCII letters in lower case.
std::string lower(std::string_view text);

// Returns the last two components of the frame's path, the line and the function: "nets/model.py:42 forward".
std::string place(const trace::Frame& frame);

}  // namespace ullage::diagnose
