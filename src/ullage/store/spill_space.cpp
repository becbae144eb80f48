// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_space.h"

#include <algorithm>

namespace ullage::store {
namespace {

AddressRange range_of(const SpillSlot& slot) { return {Address{slot.offset}, slot.size}; }

}  // namespace

SpillSpace::SpillSpace(Bytes most, Bytes offsets) : most_(most), empty_({Address{}, offsets}) {}

SpillSlot SpillSpace::hold(Address at, Bytes size) {
  const SpillSlot slot{at.value, size, ++clock_};
  in_use_by_offset_[at.value].slot = slot;
  in_use_ += size;
  in_use_peak_ = std::max(in_use_peak_, in_use_);
  return slot;
}

std::optional<SpillSlot> SpillSpace::reuse(Bytes size) {
  const std::optional<Address> at = gaps_.take(size, kSmallPage);
  if (!at) return std::nullopt;
  return hold(*at, size);
}

std::vector<AddressRange> SpillSpace::take_from_gaps(Bytes size) {
  // Takes pieces of ever smaller size: large gaps give the first, small gaps the rest.
  std::vector<AddressRange> taken;
  Bytes missing = std::min(round_up(size, kSmallPage), gaps_.vacant());
  for (Bytes piece = missing; missing > Bytes{};) {
    piece = std::min(piece, missing);
    if (const std::optional<Address> at = gaps_.take(piece, kSmallPage)) {
      taken.push_back({*at, piece});
      missing -= piece;
    } else {
      piece = round_up(piece / 2, kSmallPage);
    }
  }
  return taken;
}

void SpillSpace::emptied(AddressRange range) {
  empty_.give(range);
  footprint_ -= range.size;
}

std::optional<SpillSlot> SpillSpace::grow(Bytes size) {
  ULLAGE_CHECK(excess(size) == Bytes{}, "the spill file grows past its bound");
  const std::optional<Address> at = empty_.take(size, kSmallPage);
  if (!at) return std::nullopt;
  footprint_ += size;
  return hold(*at, size);
}

void SpillSpace::undo(const SpillSlot& slot) {
  ULLAGE_CHECK(find(slot) != nullptr, "the slot is not in use");
  in_use_by_offset_.erase(slot.offset);
  in_use_ -= slot.size;
  emptied(range_of(slot));
}

SpillContent* SpillSpace::find(const SpillSlot& slot) {
  const auto it = in_use_by_offset_.find(slot.offset);
  return it != in_use_by_offset_.end() && it->second.slot == slot ? &it->second : nullptr;
}

bool SpillSpace::Held::awaits(const std::vector<std::uint64_t>& running_forks) const {
  return std::any_of(running_forks.begin(), running_forks.end(),
                     [this](std::uint64_t fork) { return slot.serial < fork && fork < given; });
}

void SpillSpace::give(const SpillSlot& slot, const std::vector<std::uint64_t>& running_forks) {
  ULLAGE_CHECK(find(slot) != nullptr, "a slot given that is not in use");
  in_use_by_offset_.erase(slot.offset);
  in_use_ -= slot.size;
  const Held given{slot, ++clock_};
  if (!given.awaits(running_forks)) return gaps_.give(range_of(slot));
  held_slots_.push_back(given);
  held_ += slot.size;
}

void SpillSpace::release(const std::vector<std::uint64_t>& running_forks) {
  std::erase_if(held_slots_, [&](const Held& held) {
    if (held.awaits(running_forks)) return false;
    gaps_.give(range_of(held.slot));
    held_ -= held.slot.size;
    return true;
  });
}

}  // namespace ullage::store
