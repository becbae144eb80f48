// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/last_uses.h"

#include <algorithm>
#include <iterator>

namespace ullage::cuda {

// A Use is one entry of the map: a range of addresses and the point in time at which the card last used it.

void LastUses::used(Address begin, Bytes size, Point at) {
  const Address end = begin + size;
  if (const auto same = uses_.find(begin); same != uses_.end() && same->second.end == end) {
    same->second.at = at;  // the usual case: an op uses a whole storage again
    return;
  }
  cut_at(begin);
  cut_at(end);
  uses_.erase(uses_.lower_bound(begin), uses_.lower_bound(end));
  uses_.emplace(begin, Use{end, at});
}

// If this address is inside a range of the map, splits that range in two there.
void LastUses::cut_at(Address at) {
  const auto after = uses_.upper_bound(at);
  if (after == uses_.begin()) return;
  const auto around = std::prev(after);
  if (around->first == at || around->second.end <= at) return;
  uses_.emplace(at, around->second);
  around->second.end = at;
}

std::optional<LastUses::Point> LastUses::last(Address begin, Bytes size) const {
  Address at = begin;
  Point latest = 0;
  auto use = uses_.upper_bound(begin);
  if (use != uses_.begin()) --use;
  for (; at < begin + size; ++use) {
    if (use == uses_.end() || use->first > at || use->second.end <= at) return std::nullopt;
    latest = std::max(latest, use->second.at);
    at = use->second.end;
  }
  return latest;
}

}  // namespace ullage::cuda
