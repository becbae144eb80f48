// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a take means: the phase of every op, what every storage was for, where steps end, and a name for every place.
// All from what the recorder saw (roles, modes, what was written), not from stacks; so it is sure where owners.h
// guesses. The rules stand in the headers of take_phases, take_steps, take_categories and take_names.

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
  Stacks stacks;                       // of synthetic frames: the op, its graph node or layer
  std::vector<StackMeaning> meanings;  // index: StackId; the names are "aten::convolution netG.main.6"
};

// Fills in the stacks of the trace's storages, ops and events, that the other analyses work with.
TakeMeaning understand(Take& take);

}  // namespace ullage::trace
