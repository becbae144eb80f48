// SPDX-License-Identifier: Apache-2.0
#pragma once

// The actions of a plan, in order, each at an op of the step. A run carries them out as listed and decides nothing
// itself, so what the verifier (verify/verifier.h) counts is what happens.
//
// A value is *present* if its bytes are in memory: in its storage of the program, or in a storage that Ullage made or
// held. The program's storages keep their addresses; only their pages come and go. A recomputed value goes into the
// program's storage if that is alive and the value is its newest; else into a storage of Ullage's.
//
// All that an op reads must be present when it begins, except its StepOp::unread. What it makes is present when it
// ends. When the program frees a storage, the value in it is gone, unless the storage is held.

#include "ullage/plan/model/step.h"

#include <vector>

namespace ullage::plan {

struct Action {
  enum class What : std::uint8_t {
    // Gives up the value's pages. If the value is held or in a storage of Ullage's, frees that storage too. If the
    // program still has the storage, the value must be recomputed before the program frees it, because the program may
    // look at it.
    Drop,
    // Runs `op` again; its Recompute::reads must be present. Of its results, the values in `keeps` stay present; the
    // others are freed at once. If it works in place, what it overwrites must be in a storage of Ullage's and is gone
    // afterwards.
    Recompute,
    BatchNorm,  // as Recompute, by StepOp::batch_norm
    // Keeps the value's storage when the program frees it, until Drop. The storage must be alive.
    Hold,
    // Writes the value to the tier if no copy of it is there, waits until that is done, and gives up its pages.
    Spill,
    Restore,  // reads the value back and waits until it is there
    // Copies in the background, so that later actions wait less. Between WriteAhead and Spill the value must not
    // change. From ReadAhead on the bytes count as present, but may be used only after Restore.
    WriteAhead,
    ReadAhead,
  };
  What what = What::Drop;
  OpIndex at{};        // the op of the step at which it happens
  bool after = false;  // after that op; else before it
  ValueIndex value{};  // for all but Recompute and BatchNorm
  OpIndex op = kNone;  // for Recompute and BatchNorm
  std::vector<ValueIndex> keeps{};
  friend bool operator==(const Action&, const Action&) = default;
};

struct Schedule {
  // In the order in which they are carried out: by `at`, and for one op those before it, then those after it.
  std::vector<Action> actions;
  // Storages that are spilled while one step ends and the next begins. Each is named by the last value that a step
  // leaves in it (Step::in_next_step). Before the first step under the plan they are spilled too. Spilling a spilled
  // value has no effect.
  std::vector<ValueIndex> away;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace ullage::plan
