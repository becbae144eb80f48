// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds bytes, told from the stack that allocated them: a category, a phase of the step and a name short enough for
// a table. The rules stand in owner_rules.cpp, one table; what no rule knows is `Unattributed`, never a guess.
// What a stack cannot tell (does a result of the backward pass stay?) lifetimes.h tells of each storage.

#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {

// Buffers and Workspace are told by Ullage's own recordings alone.
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
  Unattributed
};
inline constexpr std::size_t kCategories = 10;
enum class Phase { Unknown, Loading, Forward, Backward, Optimizer, Evaluation, Compiling };

// "parameters", "optimizer state", ...
std::string_view name(Category category);
std::string_view name(Phase phase);

struct StackMeaning {
  // Of a stack of the backward pass or the optimizer that no rule knows more of: Temporaries, as if it dies there.
  Category category = Category::Unattributed;
  Phase phase = Phase::Unknown;
  std::string name;  // "model.py:42 forward": the innermost frame that is the person's own; else the best there is
  std::optional<FrameId> step_call;  // within an optimizer's step: the frame that called it
  bool native = false;               // the stack has C++ frames, or a profiler's ops
  bool certain = false;              // the category was seen, not told from the stack: nothing else is asked
  // Where in the calls of nn.Modules it stands, outermost first, as hashes of all frames up to there: two for each
  // call, up to the call and up to the line of its forward. Two stacks share the calls in which these are equal.
  std::vector<std::uint64_t> module_calls;
};

// Indexed by StackId: every stack is looked at once. That of StackId{0} knows nothing.
std::vector<StackMeaning> meanings(const Stacks& stacks);

// One row of "who holds the bytes".
struct Owner {
  std::string name;
  Category category = Category::Unattributed;
  Bytes bytes;
  std::uint64_t storages = 0;
  StackId stack;  // of its largest storage
};

}  // namespace ullage::trace
