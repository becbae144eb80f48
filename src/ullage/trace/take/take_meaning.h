// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out the meaning of a take: phases of ops, categories of storages, ends of steps, and a name for every place.
// All of it comes from what the recorder saw (roles, modes, writes), not from stacks. So it is sure where owners.h
// guesses. The rules are in the headers of take_phases, take_steps, take_categories and take_names.

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take.h"

#include <vector>

namespace ullage::trace {

struct TakeMeaning {
  std::vector<Phase> op_phases;        // index: OpId
  std::vector<Phase> phases;           // index: EventId
  std::vector<Category> categories;    // index: StorageId
  Steps steps;                         // From::Recorded
  Stacks stacks;                       // of made-up frames: the op, its layer or graph node, the phase, the category
  std::vector<StackMeaning> meanings;  // index: StackId; with names such as "aten::convolution netG.main.6"
};

// Also sets the stacks of the take's storages, ops and events, which other analyses need.
TakeMeaning understand(Take& take);

}  // namespace ullage::trace
