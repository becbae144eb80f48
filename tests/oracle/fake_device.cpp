// SPDX-License-Identifier: Apache-2.0
#include "fake_device.h"

#include <iterator>

namespace ullage::oracle {

FakeDevice& FakeDevice::instance() {
  static auto* device = new FakeDevice;
  return *device;
}

bool FakeDevice::charge(std::uint64_t size) {
  if (size > settings.total || counters.used > settings.total - size) {
    ++counters.refused;
    return false;
  }
  ++counters.taken;
  counters.used += size;
  return true;
}

std::uint64_t FakeDevice::take_addresses(std::uint64_t size) {
  if (settings.first_fit) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      const auto [at, room] = *hole;
      if (room < size) continue;
      holes_.erase(hole);
      if (room > size) holes_[at + size] = room - size;
      return at;
    }
  }
  const std::uint64_t at = next_;
  next_ += size;
  return at;
}

void FakeDevice::give_addresses(std::uint64_t at, std::uint64_t size) {
  if (!settings.first_fit) return;
  auto hole = holes_.emplace(at, size).first;
  if (const auto after = std::next(hole); after != holes_.end() && after->first == at + size) {
    hole->second += after->second;
    holes_.erase(after);
  }
  if (hole == holes_.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second != at) return;
  before->second += hole->second;
  holes_.erase(hole);
}

bool FakeDevice::drop(std::uint64_t handle) {
  const auto found = physical.find(handle);
  if (found == physical.end()) return false;
  if (--found->second.references == 0) {
    discharge(found->second.size);
    physical.erase(found);
  }
  return true;
}

}  // namespace ullage::oracle

extern "C" {

void fake_cuda_configure(const FakeDeviceSettings* settings) {
  ullage::oracle::FakeDevice::instance().settings = *settings;
}

void fake_cuda_counters(FakeDeviceCounters* out) { *out = ullage::oracle::FakeDevice::instance().counters; }

}  // extern "C"
