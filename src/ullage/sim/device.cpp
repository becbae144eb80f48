// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/device.h"

#include "ullage/base/check.h"

#include <iterator>

namespace ullage::sim {

std::optional<Address> SimulatedDevice::allocate(Bytes size) {
  const Bytes whole = round_up(size, kPage);
  if (whole > available()) return std::nullopt;
  used_ += whole;
  return take(whole);
}

void SimulatedDevice::free(Address at, Bytes size) {
  const Bytes whole = round_up(size, kPage);
  used_ -= whole;
  give(at, whole);
}

Address SimulatedDevice::reserve(Bytes size) { return take(round_up(size, kPage)); }

void SimulatedDevice::unreserve(Address at, Bytes size) { give(at, round_up(size, kPage)); }

bool SimulatedDevice::commit(Address, Bytes size) {
  if (size > available()) return false;
  used_ += size;
  return true;
}

void SimulatedDevice::decommit(Address, Bytes size) { used_ -= size; }

Address SimulatedDevice::take(Bytes size) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < size) continue;
    const Address at = gap->first;
    const Bytes left = gap->second - size;
    gaps_.erase(gap);
    if (left.count != 0) gaps_.emplace(at + size, left);
    return at;
  }
  const Address at = next_;
  next_ = next_ + size;
  return at;
}

void SimulatedDevice::give(Address at, Bytes size) {
  if (addresses_ == Addresses::Growing) return;
  const auto [gap, fresh] = gaps_.emplace(at, size);
  ULLAGE_CHECK(fresh, "address given back twice");
  if (const auto above = std::next(gap); above != gaps_.end() && at + size == above->first) {
    gap->second += above->second;
    gaps_.erase(above);
  }
  if (gap == gaps_.begin()) return;
  if (const auto below = std::prev(gap); below->first + below->second == at) {
    below->second += gap->second;
    gaps_.erase(gap);
  }
}

}  // namespace ullage::sim
