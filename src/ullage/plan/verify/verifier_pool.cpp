// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier_pool.h"

#include <map>
#include <utility>

namespace ullage::plan {

VerifierPool::VerifierPool(const Step& step) : step_(step) {
  for (const StepStorage& storage : step.storages) programs_.push_back({storage.bytes, {}});
  for (const Value& value : step.values) own_.push_back({step.storages.at(value.storage).bytes, {}});
  Slot others{step.level, {}};  // all live storages that the step does not list, as one block
  for (const StorageIndex i : step.storages.ids()) {
    if (!step.storages[i].from_before) continue;
    others.bytes -= step.storages[i].bytes;
    fill(programs_[i]);
  }
  fill(others);
}

void VerifierPool::fill(Slot& slot) {
  if (slot.bytes > Bytes{}) slot.at = pool_.allocate(slot.bytes);
}

void VerifierPool::empty(Slot& slot) {
  if (slot.at) pool_.free(*slot.at);
  slot.at.reset();
}

void VerifierPool::give_up(Slot& slot) {
  if (slot.bytes < store::Store::kLeastRange) return empty(slot);
  pool_.give_pages_up(slot.at.value());
}

void VerifierPool::take(Slot& slot) {
  if (slot.bytes < store::Store::kLeastRange) return fill(slot);
  pool_.take_pages(slot.at.value());
}

void VerifierPool::born(StorageIndex storage) { fill(slot(storage)); }
void VerifierPool::dies(StorageIndex storage) { empty(slot(storage)); }
void VerifierPool::give_up(StorageIndex storage) { give_up(slot(storage)); }
void VerifierPool::take(StorageIndex storage) { take(slot(storage)); }

void VerifierPool::make_own(ValueIndex value) { fill(slot(value)); }
void VerifierPool::free_own(ValueIndex value) { empty(slot(value)); }
void VerifierPool::give_up_own(ValueIndex value) { give_up(slot(value)); }
void VerifierPool::take_own(ValueIndex value) { take(slot(value)); }
void VerifierPool::rename_own(ValueIndex from, ValueIndex to) { std::swap(slot(from).at, slot(to).at); }

void VerifierPool::hand_over(ValueIndex value) {
  Slot& from = slot(value);
  Slot& to = slot(step_.values[value].storage);
  if (from.bytes < store::Store::kLeastRange) {
    std::swap(from.at, to.at);
    return;
  }
  pool_.hand_over(from.at.value(), to.at.value());
  empty(from);
}

void VerifierPool::pass_by(std::span<const Bytes> blocks) {
  std::vector<Slot> slots;
  for (const Bytes bytes : blocks) fill(slots.emplace_back(Slot{bytes, {}}));
  for (Slot& slot : slots) empty(slot);
}

void VerifierPool::begin_next_step() {
  std::multimap<Bytes, Address> left;
  Table<StorageIndex, std::optional<Address>> at(programs_.size());
  for (const StorageIndex i : programs_.ids()) {
    const std::optional<Address> now = std::exchange(programs_[i].at, std::nullopt);
    const StorageIndex next = step_.in_next_step(i);
    if (next != kNone) at[next] = now;
    if (next == kNone && now) left.emplace(programs_[i].bytes, *now);
  }
  for (const StorageIndex i : programs_.ids()) {
    programs_[i].at = at[i];
    if (!step_.storages[i].from_before || step_.in_last_step(i) != kNone) continue;
    const auto found = left.find(programs_[i].bytes);
    if (found == left.end()) {
      fill(programs_[i]);
    } else {
      programs_[i].at = left.extract(found).mapped();
    }
  }
  for (const auto& rest : left) pool_.free(rest.second);
}

}  // namespace ullage::plan
