// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the learning rate changes over the steps of a search.

#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::pulse {

enum class Schedule {
  Fixed,
  OneCycle,     // rises linearly, then falls
  OneCycleDrop  // one cycle over nine tenths of the steps, then falls to a thousandth
};

std::string_view name_of(Schedule schedule);  // "fixed", "linear1cycle", "linear1cycledrop"
std::optional<Schedule> schedule_named(std::string_view name);

// Returns the factor on the learning rate at step `step` of `steps`, counted from 0.
double rate_factor(Schedule schedule, std::int64_t step, std::int64_t steps);

}  // namespace ullage::pulse
