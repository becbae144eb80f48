// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random schedules that are correct, though pointless. They have drops, recomputes of whole chains when a value is
// needed again, holds, spills, copies ahead, and state that is away between steps. Also such schedules with one change,
// which the verifier must judge rightly.

#include "ullage/plan/model/schedule.h"

#include <cstdint>
#include <optional>

namespace ullage::plan::test {

struct Wild {
  // Each: one in so many is chosen; zero: none.
  std::uint64_t drop_in = 4;   // of the values in memory, before and after each op
  std::uint64_t hold_in = 3;   // of the values that die
  std::uint64_t spill_in = 8;  // of the values in memory, before and after each op
  std::uint64_t away_in = 4;   // of the storages that live from step to step
};

// Returns nothing if a recompute needed a value that is lost for good. Content has checked what is returned.
std::optional<Schedule> random_schedule(const Step& step, std::uint64_t seed, const Wild& wild = {});

// Returns the schedule with one action or one value of `away` removed, added, moved or changed.
Schedule mutated(const Step& step, const Schedule& schedule, std::uint64_t seed);

}  // namespace ullage::plan::test
