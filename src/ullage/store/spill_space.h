// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps account of the spill file's offsets: slots in use, gaps that freed slots left, and offsets that have no blocks
// on the disk. Touches no file and has no locks.
//
//   offset 0                                                          offsets
//   | slot | gap | slot | held | slot | empty .................................|
//          blocks of the disk behind these      no blocks: beyond the end, or
//          (the footprint, never above `most`)  given back and asked for again later
//
// A slot that is given back becomes a gap. The gap keeps its blocks, because writing to blocks that the disk has given
// already is faster than asking for new ones. A slot that a forked child may still read is held until that child has
// ended.

#include "ullage/store/address_space.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

namespace ullage::store {

// A place in a tier. A tier may also hand out slots of the tier below it; `height` says whose a slot is. No two slots
// in use share a byte.
struct SpillSlot {
  std::uint64_t offset = 0;
  Bytes size{};              // a multiple of 4096
  std::uint64_t serial = 0;  // never used twice, so a slot that is used by mistake after its end is recognized
  std::uint32_t height = 0;  // of its tier: 0 is the spill file, 1 the tier above it

  friend bool operator==(const SpillSlot&, const SpillSlot&) = default;
};

// The spill file's record of a slot in use. The thread that writes the slot sets the atomic fields.
struct SpillContent {
  SpillSlot slot;
  std::atomic<bool> whole{false};          // all bytes were written
  std::atomic<bool> checked{false};        // `checksum` is that of the bytes
  std::atomic<std::uint64_t> checksum{0};  // if `checked`
};

class SpillSpace final {
 public:
  // `most`: the bound on the footprint. `offsets`: how long the file may become. Both are multiples of 4096.
  SpillSpace(Bytes most, Bytes offsets);

  // Takes a slot in the smallest gap that is large enough; nothing if there is none.
  std::optional<SpillSlot> reuse(Bytes size);

  // Can `size` more bytes be in use within the bound? Gaps may have to give their blocks back first.
  bool fits(Bytes size) const { return in_use_ + held_ + size <= most_; }
  // By how much the footprint would pass the bound if it grew by `size`.
  Bytes excess(Bytes size) const { return saturating_sub(footprint_ + size, most_); }
  // Takes `size` bytes out of gaps (all gaps, if they have less), so that the caller can give their blocks back. For
  // each range the caller then calls emptied(), or kept() if the system refused. Until then it counts in the footprint.
  std::vector<AddressRange> take_from_gaps(Bytes size);
  void emptied(AddressRange range);
  void kept(AddressRange range) { gaps_.give(range); }

  // Takes a slot where no blocks are yet; nothing if the file may not become that long. ContractError unless
  // excess(size) is zero.
  std::optional<SpillSlot> grow(Bytes size);
  // Undoes grow(), because the blocks could not be had.
  void undo(const SpillSlot& slot);

  // Returns null if the slot is not in use. The result is valid until the slot is given back.
  SpillContent* find(const SpillSlot& slot);

  // Ends the use of the slot. It becomes a gap, or is held if one of the running forks (named by fork_time()) came
  // while it was in use.
  void give(const SpillSlot& slot, const std::vector<std::uint64_t>& running_forks);
  // Makes gaps of the held slots that none of the running forks can read.
  void release(const std::vector<std::uint64_t>& running_forks);
  // Returns a number for a fork that happens now. One clock counts forks, slots taken and slots given back. So a slot
  // was in use at the fork if its serial is lower and it is given back at a higher number.
  std::uint64_t fork_time() { return ++clock_; }

  Bytes most() const { return most_; }
  Bytes in_use() const { return in_use_; }
  Bytes in_use_peak() const { return in_use_peak_; }
  Bytes held() const { return held_; }
  Bytes footprint() const { return footprint_; }
  Bytes gaps() const { return gaps_.vacant(); }

 private:
  struct Held {
    SpillSlot slot;
    std::uint64_t given;
    bool awaits(const std::vector<std::uint64_t>& running_forks) const;
  };

  SpillSlot hold(Address at, Bytes size);

  Bytes most_;
  Bytes in_use_{};
  Bytes in_use_peak_{};
  Bytes held_{};
  Bytes footprint_{};
  std::uint64_t clock_ = 0;  // counts slots taken, slots given back, and forks
  AddressSpace gaps_{{}};    // with blocks
  AddressSpace empty_;       // without blocks
  std::map<std::uint64_t, SpillContent> in_use_by_offset_;
  std::list<Held> held_slots_;
};

}  // namespace ullage::store
