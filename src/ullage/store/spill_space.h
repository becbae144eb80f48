// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which parts of the spill file hold what: slots in use, gaps left by freed slots, and offsets with no disk blocks
// behind them. Bookkeeping alone: no file, no locks.
//
//   offset 0                                                          offsets
//   | slot | gap | slot | held | slot | empty .................................|
//          blocks of the disk behind these      no blocks: beyond the end, or
//          (the footprint, never above `most`)  given back and found again later
//
// A freed slot becomes a gap that keeps its blocks, because writing to blocks the disk already gave is faster than
// asking for new ones. A slot that a forked child may still read is held first.

#include "ullage/store/address_space.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

namespace ullage::store {

// A place in a tier, or in the one below it. No two slots that are in use share a byte.
struct SpillSlot {
  std::uint64_t offset = 0;
  Bytes size{};              // a multiple of 4096
  std::uint64_t serial = 0;  // never given twice: a slot outlives its use only by mistake, and is then recognized
  std::uint32_t height = 0;  // of its tier above the file: 0, the file itself

  friend bool operator==(const SpillSlot&, const SpillSlot&) = default;
};

// What the file knows of a slot in use; written by the thread that writes the slot.
struct SpillContent {
  SpillSlot slot;
  std::atomic<bool> whole{false};  // all bytes were written
  std::atomic<bool> checked{false};
  std::atomic<std::uint64_t> checksum{0};  // where `checked`
};

class SpillSpace final {
 public:
  // `most`: blocks of the disk that may be taken; `offsets`: how long the file may become. Multiples of 4096.
  SpillSpace(Bytes most, Bytes offsets);

  // A slot in the smallest gap that is large enough; nothing when there is none.
  std::optional<SpillSlot> reuse(Bytes size);

  // Whether `size` more bytes can be in use within the bound; gaps may have to give back blocks first.
  bool fits(Bytes size) const { return in_use_ + held_ + size <= most_; }
  // Bytes by which the footprint passes the bound once it grows by `size`.
  Bytes excess(Bytes size) const { return saturating_sub(footprint_ + size, most_); }
  // Takes `size` bytes out of gaps (all gaps, if they have less) so that the caller can give their blocks back, and
  // then says so by emptied(), or by kept() where the system refused. Until then they count in the footprint.
  std::vector<AddressRange> take_from_gaps(Bytes size);
  void emptied(AddressRange range);
  void kept(AddressRange range) { gaps_.give(range); }

  // A slot where no blocks are yet; nothing when the file may not become that long. `excess(size)` must be zero.
  std::optional<SpillSlot> grow(Bytes size);
  // Undoes grow(): the blocks could not be had.
  void undo(const SpillSlot& slot);

  // Null when the slot is not in use (any more). Stays valid until the slot is given.
  SpillContent* find(const SpillSlot& slot);

  // The slot is no longer in use. It is held where one of the forks, named by fork_time(), came while it was in use.
  void give(const SpillSlot& slot, const std::vector<std::uint64_t>& running_forks);
  // Held slots that none of the running forks can read become gaps.
  void release(const std::vector<std::uint64_t>& running_forks);
  // A name for a fork that happens now: slots taken before are older, slots given later are younger.
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
  std::uint64_t clock_ = 0;  // serials of slots and times of forks and gifts
  AddressSpace gaps_{{}};    // with blocks
  AddressSpace empty_;       // without
  std::map<std::uint64_t, SpillContent> in_use_by_offset_;
  std::list<Held> held_slots_;
};

}  // namespace ullage::store
