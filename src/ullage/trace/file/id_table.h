// SPDX-License-Identifier: Apache-2.0
#pragma once

// A hash table from numbers to small values, for the recorder's hot path. It is one array, so an entry takes no memory
// of its own. Ids of storages come and go a thousand times per step; the table grows only with the number held at once.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ullage::trace {

template <class Value>
class IdTable final {
 public:
  // Null if there is no such key. Valid until the table changes. kNone must not be used as a key.
  Value* find(std::uint64_t key) {
    Slot& slot = slots_[place(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  // The value of the key. Adds an empty one if there is none.
  Value& operator[](std::uint64_t key) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(key)];
    if (slot.key != key) {
      slot = {key, {}};
      ++size_;
    }
    return slot.value;
  }
  // Removes the key, if it is there. Entries in later slots that are not in their home slot move back into the hole, so
  // that no search ends there.
  void erase(std::uint64_t key) {
    std::size_t hole = place(key);
    if (slots_[hole].key != key) return;
    --size_;
    for (std::size_t i = next(hole); slots_[i].key != kNone; i = next(i)) {
      const std::size_t wanted = home(slots_[i].key);
      if (((i - wanted) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole] = {};
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != kNone) visit(slot.key, slot.value);
    }
  }
  std::size_t size() const { return size_; }
  std::size_t held() const { return slots_.capacity() * sizeof(Slot); }  // bytes

  static constexpr std::uint64_t kNone = UINT64_MAX;

 private:
  struct Slot {
    std::uint64_t key = kNone;
    Value value{};
  };

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  // Fibonacci hashing: consecutive keys get distant slots, and all bits of a key count.
  std::size_t home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15u >> 20) & mask(); }
  std::size_t place(std::uint64_t key) const {
    std::size_t i = home(key);
    while (slots_[i].key != kNone && slots_[i].key != key) i = next(i);
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != kNone) slots_[place(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half full
  std::size_t size_ = 0;
};

}  // namespace ullage::trace
