// SPDX-License-Identifier: Apache-2.0
#include "pulse/schedule.h"

#include "ullage/base/check.h"

#include <array>
#include <cmath>

namespace ullage::pulse {
namespace {

constexpr std::array kSchedules = {Schedule::Fixed, Schedule::OneCycle, Schedule::OneCycleDrop};

// 0.1 at both ends, 1 in the middle.
double one_cycle(double step, double steps) { return (9 * (1 - 2 * std::abs(step / steps - 0.5)) + 1) / 10; }

}  // namespace

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::Fixed:
      return "fixed";
    case Schedule::OneCycle:
      return "linear1cycle";
    case Schedule::OneCycleDrop:
      return "linear1cycledrop";
  }
  contract_broken("unknown Schedule", __FILE__, __LINE__);
}

std::optional<Schedule> schedule_named(std::string_view name) {
  for (const Schedule schedule : kSchedules) {
    if (name_of(schedule) == name) return schedule;
  }
  return std::nullopt;
}

double rate_factor(Schedule schedule, std::int64_t step, std::int64_t steps) {
  const auto x = static_cast<double>(step);
  const auto all = static_cast<double>(steps);
  switch (schedule) {
    case Schedule::Fixed:
      return 1;
    case Schedule::OneCycle:
      return one_cycle(x, all);
    case Schedule::OneCycleDrop:
      if (x < 0.9 * all) return one_cycle(x, 0.9 * all);
      return 1.0 / 10 + (x - 0.9 * all) / (0.1 * all) * (1.0 / 1000 - 1.0 / 10);
  }
  contract_broken("unknown Schedule", __FILE__, __LINE__);
}

}  // namespace ullage::pulse
