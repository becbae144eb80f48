// SPDX-License-Identifier: Apache-2.0
#pragma once

// Places small storages in blocks of slabs. A slab is a range of 256 KiB that is cut into blocks of one size class. The
// classes are 64, 128, 192 and 256 bytes; above that, sizes double every four classes (320, 384, 448, 512, 640, ...).
// So a block above 256 bytes is at most a quarter larger than asked for, and a smaller one at most 63 bytes larger. The
// list of free blocks is kept outside the slab, never in its bytes, so that placement works with no memory mapped at
// the addresses. Edit this to change the size classes, or the size from which a storage gets a range of its own.

#include "ullage/store/idle_pages.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ullage::store {

struct LiveStorage {
  Address at;
  Bytes asked;
};

// Not thread-safe: the store calls it under its lock.
class Slabs final {
 public:
  static constexpr Bytes kSlab = 256_KiB;
  static constexpr Bytes kBlockUnit = 64_B;     // alignment of every block; torch asks for an alignment of 64
  static constexpr Bytes kBlockLimit = 64_KiB;  // larger requests, and those of this size, get a range of their own
  static constexpr std::size_t kClasses = 36;

  // Takes a free block for `size` (above zero, below kBlockLimit). Returns nothing if a slab has to be added first.
  std::optional<Address> take(Bytes size);
  // Adds a slab for the class that serves `size`. `range`: kSlab long, at a multiple of kSlab.
  void add_slab(Range range, Bytes size);

  // Does the address lie in one of the slabs?
  bool owns(Address block) const;
  struct Freed {
    Bytes size;                    // as asked for in take()
    std::optional<Range> emptied;  // set if no block of the slab is in use any more: its range; the slab is gone then
  };
  // Frees a block. ContractError if it was freed already or never taken.
  Freed give(Address block);

  // Appends every block in use, slab by slab.
  void list(std::vector<LiveStorage>& into) const;

  // Bytes of one block of the class that serves `size`.
  static Bytes block_size(Bytes size);

 private:
  struct Slab {
    Range range;
    std::size_t size_class = 0;
    std::uint32_t fresh = 0;  // blocks of this and higher numbers were never used
    std::uint32_t used = 0;
    std::vector<std::uint16_t> free;   // used before, free now
    std::vector<std::uint32_t> asked;  // bytes asked for, by block; 0: it is free
    std::size_t place = 0;             // index in open_[size_class], if the slab is there
  };

  static bool full(const Slab& slab);
  void open(Slab& slab);   // puts the slab into open_
  void close(Slab& slab);  // takes it out

  std::unordered_map<std::uint64_t, std::unique_ptr<Slab>> slabs_;  // by address / kSlab
  std::array<std::vector<Slab*>, kClasses> open_;                   // by class: slabs with a free block
};

}  // namespace ullage::store
