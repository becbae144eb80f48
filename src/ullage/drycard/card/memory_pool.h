// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver's pools behind cudaMallocAsync. A pool takes segments from its card and hands out parts of them. A segment
// is a multiple of 32 MiB, or just what is needed if the card has less room. If the pool holds more than its release
// threshold after a give(), it returns segments that are wholly free to the card. A real driver can also join pages of
// different segments for one request; this model does not.

#include "ullage/drycard/card/address_ranges.h"
#include "ullage/drycard/card/memory.h"

#include <map>

namespace ullage::drycard {

// Call it with lock() held.
class MemoryPool final {
 public:
  explicit MemoryPool(int card) : card_(card) {}

  // The program allocates `bytes`, at least 1. kOutOfMemory: the card has no room for another segment, not even after
  // trim_pools().
  Error take(std::size_t bytes, Address* at);
  // The program frees what take() gave. kInvalidValue: no block of this pool begins there.
  Error give(Address at);
  // Returns wholly free segments to the card until at most `keep` bytes are held, as far as there are such segments.
  void trim(std::uint64_t keep);

  int card() const { return card_; }
  // get() and set() take a cudaMemPoolAttr and a value of that attribute's type. Return kInvalidValue if the attribute
  // is unknown.
  Error get(int attribute, void* value) const;
  Error set(int attribute, const void* value);

 private:
  bool grow(std::size_t size, std::size_t asked);

  int card_;
  AddressRanges free_;
  std::map<Address, std::size_t> segments_;
  std::uint64_t threshold_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t held_peak_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t used_peak_ = 0;
  // cudaMemPoolAttr 1 to 3: follow event dependencies, opportunistic, internal dependencies. Stored, without effect.
  int reuse_[3] = {1, 1, 1};
};

// Returns the wholly free segments of all pools of the card to it.
void trim_pools(int ordinal);

}  // namespace ullage::drycard
