// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules at random that are right, though nobody would want them: drops, and recomputes of whole chains where
// something is needed again; holds, spills, copies ahead, states away. And the same with one thing changed.

#include "ullage/plan/model/schedule.h"

#include <cstdint>
#include <optional>

namespace ullage::plan::test {

struct Wild {
  std::uint64_t drop_in = 4;   // one in so many of what is there, before and after each op; zero: never
  std::uint64_t hold_in = 3;   // one in so many of what dies
  std::uint64_t spill_in = 8;  // one in so many of what is there
  std::uint64_t away_in = 4;   // one in so many of what lives from step to step
};

// None where a chain turned out to need what is gone for good. The contents have been looked at.
std::optional<Schedule> random_schedule(const Step& step, std::uint64_t seed, const Wild& wild = {});

// One action or one value of `away` less, more, elsewhere or changed.
Schedule mutated(const Step& step, const Schedule& schedule, std::uint64_t seed);

}  // namespace ullage::plan::test
