// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan does, and when: a list of actions at the ops of a step, carried out word for word. Nothing is decided
// while the program runs; so what the simulator counts is what happens.
//
// A value is *present* where its bytes are in memory: in its storage of the program, or in one that Ullage made or
// kept. The program's own storages keep their addresses; what comes and goes are the pages behind them. Recomputed
// values go behind the program's storage where that still lives and they are its newest value; else into a storage of
// Ullage's.
//
// An op needs all it reads (but `unread`) present. What it makes is present when it ends. A storage that the program
// frees takes its value along, unless it is held.

#include "ullage/plan/model/step.h"

#include <vector>

namespace ullage::plan {

struct Action {
  enum class What : std::uint8_t {
    // The value's bytes are given up. Of one that Ullage holds or recomputed: the storage too. Of the program's
    // storage: only where they are made again while that lives; else the program could look at what is gone for good.
    Drop,
    // `op` is run again (its Recompute::reads are present): what it makes and is in `keeps` is present then, the rest
    // of it goes at once. In place: what it overwrites must be in a storage of Ullage's, and is present no more.
    Recompute,
    BatchNorm,  // as Recompute, by StepOp::batch_norm
    // The value's storage is kept when the program lets go of it, until Drop. Of a storage that lives.
    Hold,
    // Written out, where it changed since it came back or was never written, and its pages given up; waits until done.
    Spill,
    Restore,  // read back; waits until done
    // Copies in the background, so that what follows need not wait. WriteAhead: the value is not changed until its
    // Spill. ReadAhead: its bytes count as present from here on, but only Restore makes sure that they are.
    WriteAhead,
    ReadAhead,
  };
  What what = What::Drop;
  OpIndex at{};        // of the step
  bool after = false;  // else before it
  ValueIndex value{};  // of all but Recompute and BatchNorm
  OpIndex op = kNone;  // of Recompute and BatchNorm
  std::vector<ValueIndex> keeps{};
  friend bool operator==(const Action&, const Action&) = default;
};

struct Schedule {
  // In the order in which they are carried out: by `at`, before it and after it.
  std::vector<Action> actions;
  // Values of storages that live from step to step, which are spilled while one step ends and the next begins. A first
  // step under the plan spills them at its begin; so does every Spill of what is spilled already nothing.
  std::vector<ValueIndex> away;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace ullage::plan
