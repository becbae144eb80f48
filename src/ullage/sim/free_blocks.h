// SPDX-License-Identifier: Apache-2.0
#pragma once

// The free blocks of one pool and one stream in the order of a best-fit search: by size, then by `born`, then by
// address. Blocks are kept in size classes, 16 for each doubling of the size. Each class is a short sorted vector. One
// bit per class says whether it holds any block:
//
//   512 1024 ... 8 KiB | 8.5 ... | 2 MiB, 2.125 ...      class
//    0    1         1  |  0      |  1                    bit
//         [1024 1024]                                    blocks of the class, sorted
//
// So a search, an insertion or a removal usually touches one or two cache lines.

#include "ullage/base/bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::sim {

using BlockIndex = std::uint32_t;  // index in CachingAllocator::blocks_

// A block as its owner names it. Valid from allocation to free.
struct BlockId {
  BlockIndex value = 0;
  friend constexpr auto operator<=>(BlockId, BlockId) = default;
};

class FreeBlocks final {
 public:
  struct Entry {
    Bytes size;
    std::uint64_t born = 0;  // lower comes first
    Address address;         // at equal `born`, lower comes first
    BlockIndex block = 0;

    friend constexpr auto operator<=>(const Entry& a, const Entry& b) {
      if (const auto by_size = a.size <=> b.size; by_size != 0) return by_size;
      if (const auto by_birth = a.born <=> b.born; by_birth != 0) return by_birth;
      return a.address <=> b.address;
    }
    friend constexpr bool operator==(const Entry& a, const Entry& b) { return (a <=> b) == 0; }
  };

  // A place in the order. Valid until the next insertion or removal. False as a bool if it is past the last entry.
  struct Cursor {
    std::size_t size_class = kClasses;
    std::size_t at = 0;
    explicit operator bool() const { return size_class < kClasses; }
  };

  FreeBlocks() : classes_(kClasses) {}

  void insert(const Entry& entry);
  // ContractError if the entry is not there.
  void erase(const Entry& entry);
  bool empty() const { return count_ == 0; }

  // The first entry of at least that size, or a false cursor.
  Cursor first_from(Bytes size) const;
  Cursor after(Cursor here) const;
  // The entry before, or a false cursor. `here` may be false: then the last entry.
  Cursor before(Cursor here) const;
  const Entry& at(Cursor here) const { return classes_[here.size_class][here.at]; }

  // All entries, in order.
  std::vector<Entry> all() const;

 private:
  static constexpr std::size_t kClasses = std::size_t{16} * 52;  // up to 2^64 bytes, in units of 512

  static std::size_t class_of(Bytes size);
  std::size_t next_used(std::size_t from) const;
  std::size_t last_used(std::size_t below) const;

  std::vector<std::vector<Entry>> classes_;
  std::array<std::uint64_t, (kClasses + 63) / 64> used_{};
  std::size_t count_ = 0;
};

}  // namespace ullage::sim
