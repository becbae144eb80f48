// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver's pools behind cudaMallocAsync. A pool takes segments of 32 MiB or more from its card and hands out parts
// of them. When it holds more than its release threshold, it gives back segments that are wholly free. A real driver
// can also join pages of different segments for one request; this model does not.

#include "ullage/drycard/card/address_ranges.h"
#include "ullage/drycard/card/memory.h"

#include <map>

namespace ullage::drycard {

class MemoryPool final {
 public:
  explicit MemoryPool(int card) : card_(card) {}

  // Allocates `bytes`. kOutOfMemory: the card has no room for another segment, not even after trim_pools().
  Error take(std::size_t bytes, Address* at);
  // Frees what take() gave. kInvalidValue: no block of this pool begins there.
  Error give(Address at);
  // Gives wholly free segments back until at most `keep` bytes are held, as far as there are such segments.
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
  int reuse_[3] = {1, 1, 1};  // cudaMemPoolAttr 1 to 3: follow event dependencies, opportunistic, internal dependencies
};

// Gives the idle bytes of all pools of the card back to it.
void trim_pools(int ordinal);

}  // namespace ullage::drycard
