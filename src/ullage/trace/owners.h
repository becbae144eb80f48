// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who holds bytes, told from the stack that allocated them: a category, a phase of the step and a name short enough for
// a table. Rules and their order stand in owners.cpp, one table; what no rule knows is `Unattributed`, never a guess.

#include "ullage/trace/recording.h"
#include "ullage/trace/trace.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {

enum class Category { Parameters, Gradients, OptimizerState, Activations, Inputs, Temporaries, Library, Unattributed };
enum class Phase { Unknown, Loading, Forward, Backward, Optimizer, Evaluation, Compiling };

// "parameters", "optimizer state", ...
std::string_view name(Category category);
std::string_view name(Phase phase);

struct StackMeaning {
  Category category = Category::Unattributed;
  Phase phase = Phase::Unknown;
  std::string name;  // "model.py:42 forward": the innermost frame that is the person's own; else the best there is
};

// Indexed by StackId: every stack is looked at once.
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
