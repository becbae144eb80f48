// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds bytes, from the stack that allocated them: a category, a phase of the step, and a name short enough for a
// table. The rules are one table in owner_rules.cpp. If no rule gives a category, the phase does (StackMeaning). If no
// rule gives a phase either, the category is `Unattributed`, never a guess.
// Some things do not show in a stack (does a result of the backward pass stay?); lifetimes.h decides them per storage.

#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {

// Only takes have Buffers and Workspace.
enum class Category {
  Parameters,
  Gradients,
  OptimizerState,
  Buffers,
  Activations,
  Inputs,
  Temporaries,
  Workspace,
  Library,
  Unattributed,
  WeightCopies  // of fp32 weights, in half precision, that autocast makes and caches; only snapshots have them
};
inline constexpr std::size_t kCategories = 11;
enum class Phase { Unknown, Loading, Forward, Backward, Optimizer, Evaluation, Compiling };

// "parameters", "optimizer state", ...
std::string_view name(Category category);
std::string_view name(Phase phase);

struct StackMeaning {
  // If no rule gives a category, it is Temporaries in the phases Backward and Optimizer: an unknown allocation there is
  // assumed to die there. In Forward and Evaluation it is Activations.
  Category category = Category::Unattributed;
  Phase phase = Phase::Unknown;
  std::string name;                  // "model.py:42 forward", see owner_names.h, or the name that a rule gives
  std::optional<FrameId> step_call;  // if inside an optimizer's step: the frame that called the step
  bool native = false;               // the stack has C++ frames, or ops of a profiler
  bool certain = false;              // the category was recorded, not guessed from the stack: it is final
  // The calls of nn.Modules that the stack is in, outermost first, two hashes each. The first covers the Python frames
  // from the outermost to the call's caller, the second those up to the module's forward. If two stacks have the same
  // numbers, they are inside the same calls, at the same source lines.
  std::vector<std::uint64_t> module_calls;
  bool autocast_cast = false;  // autocast makes a copy in another type there
  bool autocast_exit = false;  // autocast ends there and drops its cached copies
};

// The meaning of every stack. Index: StackId. StackId{0} has no category and no phase.
std::vector<StackMeaning> meanings(const Stacks& stacks);

// One row of "who holds the bytes".
struct Owner {
  std::string name;
  Category category = Category::Unattributed;
  Bytes bytes;
  std::uint64_t storages = 0;
  StackId stack;  // the stack of its largest storage
};

}  // namespace ullage::trace
