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

double bytes_allocated(const trace::Take& take, const trace::Steps& steps) {
  double most = 0;
  for (const std::size_t i : counted(steps)) {
    double sum = 0;
    for (std::uint64_t at = steps.begins[i].value; at < end_of_step(take, steps, i).value; ++at) {
      const auto* born = std::get_if<trace::event::Allocation>(&take.trace.events[at].what);
      if (born != nullptr) sum += double(take.trace.storages[born->storage.value].bytes.count);
    }
    most = std::max(most, sum);
  }
  return most;
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

Seconds step_time_at(const trace::TraceFile& file, const trace::Take& evaluated, const trace::Steps& steps) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, least = 0;
  for (const trace::Take& take : file.takes) {
    if (take.trace.events.size() != evaluated.trace.events.size()) continue;  // its steps stand at other events
    const double seconds = step_time(take, steps).count;
    const double bytes = bytes_allocated(take, steps);
    if (seconds <= 0) continue;
    least = n == 0 ? seconds : std::min(least, seconds);
    n += 1, x += bytes, y += seconds, xx += bytes * bytes, xy += bytes * seconds;
  }
  if (n == 0) return {};
  const double spread = n * xx - x * x;
  const double slope = spread > 0 ? std::max(0.0, (n * xy - x * y) / spread) : 0;
  return Seconds{std::max(least, (y - slope * x) / n + slope * bytes_allocated(evaluated, steps))};
}

}  // namespace ullage::predict
