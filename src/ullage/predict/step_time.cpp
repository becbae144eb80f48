// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/step_time.h"

#include <algorithm>
#include <vector>

namespace ullage::predict {
namespace {

EventId end_of_step(const trace::Take& take, const trace::Steps& steps, std::size_t i) {
  return i + 1 < steps.begins.size() ? steps.begins[i + 1] : take.trace.end();
}

// The steps whose times count.
std::vector<std::size_t> counted(const trace::Steps& steps) {
  std::vector<std::size_t> which;
  for (std::size_t i = steps.whole() > 1 ? 1 : 0; i < steps.whole(); ++i) which.push_back(i);
  return which;
}

}  // namespace

Seconds step_time(const trace::Take& take, const trace::Steps& steps) {
  std::vector<double> times;
  for (const std::size_t i : counted(steps)) {
    const EventId begin = steps.begins[i], end = end_of_step(take, steps, i);
    if (begin >= end || end > take.trace.end()) continue;
    const auto& from = take.trace.events[begin.value].at;
    const auto& to = take.trace.events[end.value - 1].at;
    if (from && to && *to >= *from) times.push_back(double((*to).count - (*from).count) * 1e-6);
  }
  if (times.empty()) return {};
  std::ranges::sort(times);
  return Seconds{times[times.size() / 2]};
}

}  // namespace ullage::predict
