// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cheapest of all schedules of a small step, by trying them all: what a bound must never pass and a plan never
// beat.

#include "ullage/plan/model/plan.h"

#include <cstddef>
#include <optional>
#include <variant>

namespace ullage::plan::test {

struct Cheapest {
  Seconds seconds;  // recomputes, and copies that are waited for
  Schedule schedule;
};
struct NoSchedule {};  // none fits
struct TooManyStates {};
using CheapestOutcome = std::variant<Cheapest, NoSchedule, TooManyStates>;

// Up to 16 values, at most two storages that live from step to step.
CheapestOutcome cheapest_schedule(const Step& step, const Ask& ask, std::size_t most_states);

}  // namespace ullage::plan::test
