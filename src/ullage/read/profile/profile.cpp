// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile.h"

#include "ullage/read/profile/profile_device.h"
#include "ullage/read/profile/profile_events.h"
#include "ullage/read/profile/profile_stacks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::read {
namespace {

// Returns the torch version, as far as the fields show it.
std::string torch_of(const ProfileEvents& events) {
  if (events.base_time) return "2.4 or later";
  if (events.event_index) return "1.12 or later";
  const bool addresses = std::any_of(events.memory.begin(), events.memory.end(), [](auto& e) { return e.address; });
  return addresses ? "1.10 or later" : "1.8 or 1.9";
}

using DeviceKey = std::pair<int, int>;  // type, number

// Returns each device's events, sorted by time. Events at the same time keep the file's order.
std::map<DeviceKey, std::vector<std::uint32_t>> by_device(const std::vector<MemoryEvent>& memory) {
  std::map<DeviceKey, std::vector<std::uint32_t>> result;
  for (std::uint32_t i = 0; i < memory.size(); ++i)
    result[{memory[i].device_type, std::max(memory[i].device, 0)}].push_back(i);
  for (auto& [key, events] : result)
    std::stable_sort(events.begin(), events.end(), [&](auto a, auto b) { return memory[a].at < memory[b].at; });
  return result;
}

std::vector<trace::Annotation> annotations(const ProfileEvents& events) {
  struct End {
    Nanoseconds at;
    bool start;
    std::uint32_t name;
  };
  std::vector<End> ends;
  for (const Span& span : events.spans) {
    if (span.kind != Span::Kind::Annotation) continue;
    ends.push_back({span.begin, true, span.name});
    ends.push_back({std::max(span.end, Nanoseconds{span.begin.count + 1}), false, span.name});
  }
  // If one annotation ends when the next begins, the end comes first.
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.at != b.at ? a.at < b.at : a.start < b.start; });
  std::vector<trace::Annotation> result;
  result.reserve(ends.size());
  for (const End& end : ends)
    result.push_back({end.start, events.texts[end.name], 0, trace::Microseconds{end.at.count / 1000}});
  return result;
}

void name_device(trace::Profile::Device& device, const ProfileEvents& events) {
  if (device.type == 0) {
    device.name = "CPU";
    return;
  }
  for (const ProfiledDevice& known : events.devices) {
    if (known.id != device.index) continue;
    device.name = known.name;
    device.total = known.total;
  }
}

}  // namespace

Result<trace::Profile> read_profile(std::string_view json, const std::string& name) {
  ULLAGE_TRY_VALUE(ProfileEvents events, read_profile_events(json, name));
  trace::Profile profile;
  profile.torch = torch_of(events);
  const OpenSpans open = find_open_spans(events, profile.stacks);
  const std::vector<trace::Annotation> named = annotations(events);
  std::vector<std::pair<Bytes, trace::Profile::Device>> devices;
  for (const auto& [key, memory] : by_device(events.memory)) {
    trace::Profile::Device device = make_device(events, open, memory);
    name_device(device, events);
    device.trace.annotations = named;
    for (trace::Annotation& annotation : device.trace.annotations) annotation.device = device.index;
    devices.emplace_back(peak(device.trace), std::move(device));
  }
  std::stable_sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [bytes, device] : devices) profile.devices.push_back(std::move(device));
  return profile;
}

}  // namespace ullage::read
