// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface through which the store uses the operating system: address space that costs nothing, and physical
// pages. Pages can be mapped at addresses, moved from one address to another, and freed. `OsPages` is Linux and
// `cuda::CardPages` a card's driver. `NoPages` maps no memory, so that the simulator can run the same store.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

namespace ullage::store {

inline constexpr Bytes kSmallPage = 4_KiB;
inline constexpr Bytes kHugePage = 2_MiB;

// Small: pages of 4 KiB. Huge: chunks of 2 MiB at multiples of 2 MiB, which the system may back by one huge page each.
enum class PageKind { Small, Huge };

// The access that the program has to pages. With None, and where there are no pages, a touch is a page fault.
enum class Access { None, Read, ReadWrite };

constexpr Bytes page_size(PageKind kind) { return kind == PageKind::Huge ? kHugePage : kSmallPage; }

// Half-open [begin, begin + size).
struct AddressRange {
  Address begin;
  Bytes size;

  constexpr Address end() const { return begin + size; }
  constexpr bool contains(Address a) const { return begin <= a && a < end(); }
};

// All addresses and lengths are multiples of the page size of the kind that the range is or was filled with. All ranges
// lie in the reserved one.
class Pages {
 public:
  virtual ~Pages() = default;

  // The smallest number of bytes that can be mapped at an address. If it is kHugePage, as on a card, the store asks for
  // huge pages only. Then whoever allocates from the store must serve requests below Store::kLeastRange elsewhere.
  virtual Bytes granularity() const { return kSmallPage; }

  // Reserves address space at which no memory is mapped: `wanted` bytes, or as many as the system allows. Called once.
  virtual Result<AddressRange> reserve(Bytes wanted) = 0;

  // Maps fresh pages at [at, at + length). They are writable and resident when this returns, and zeroed unless they are
  // a card's. False: the system refused, and nothing is mapped there.
  virtual bool fill(Address at, Bytes length, PageKind kind) = 0;

  // Moves the pages at `from`, with their contents, to `to`, which had none. `from` is then reserved and empty. False:
  // the system refused; the pages are still at `from`.
  virtual bool move(Address from, Address to, Bytes length) = 0;

  // Gives the pages of the range back to the system; the range stays reserved.
  virtual void drop(Address at, Bytes length) = 0;

  // Sets the access to the pages of the range; move() keeps it. False: the system refused.
  virtual bool protect(Address at, Bytes length, Access access) = 0;

  // Can pages be held without an address? The next three functions are called only then.
  virtual bool holds_unmapped() const { return false; }
  // Takes the pages off the range, which stays reserved. False: the system refused; they are still there.
  virtual bool unmap(Address, Bytes /*length*/) { return false; }
  // Maps as many of the unmapped pages at a range that has none; their bytes are undefined. False: the system refused.
  virtual bool remap(Address, Bytes /*length*/) { return false; }
  // Gives as many of the unmapped pages back to the system.
  virtual void drop_unmapped(Bytes /*length*/) {}
};

// Maps no memory: for simulation and for tests of placement alone.
class NoPages final : public Pages {
 public:
  Result<AddressRange> reserve(Bytes wanted) override { return AddressRange{Address{1ull << 40}, wanted}; }
  bool fill(Address, Bytes, PageKind) override { return true; }
  bool move(Address, Address, Bytes) override { return true; }
  void drop(Address, Bytes) override {}
  bool protect(Address, Bytes, Access) override { return true; }
};

}  // namespace ullage::store
