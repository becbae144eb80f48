// SPDX-License-Identifier: Apache-2.0
// The driver's virtual memory management, which torch's expandable segments and Ullage's own pool use. A program
// reserves addresses, creates pages, maps them, makes them accessible and unmaps them. A page counts from cuMemCreate
// until its handle is released and its last mapping is removed.

#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/work.h"

#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

namespace ullage::drycard {
namespace {

using Handle = std::uint64_t;

struct Pages {
  std::size_t size = 0;
  int card = 0;        // -1: host memory
  int references = 1;  // one for its creator and one for each mapping
  int handle_types = 0;
};

struct Reserved {
  std::size_t size = 0;
  int card = 0;  // the card whose part of the address space it is in
};

struct Mapping {
  std::size_t size = 0;
  Handle handle = 0;
};

struct VirtualMemory {
  std::map<Address, Reserved> reserved;
  std::map<Address, Mapping> mappings;
  std::unordered_map<Handle, Pages> pages;
  Handle next = 1;
};

VirtualMemory& memory_maps() {
  static VirtualMemory* made = new VirtualMemory;
  return *made;
}

bool drop(VirtualMemory& self, Handle handle) {
  const auto it = self.pages.find(handle);
  if (it == self.pages.end()) return false;
  if (--it->second.references == 0) {
    if (it->second.card >= 0) discharge(it->second.card, it->second.size);
    self.pages.erase(it);
  }
  return true;
}

std::map<Address, Mapping>::iterator mapping_around(Address at) {
  VirtualMemory& self = memory_maps();
  auto it = self.mappings.upper_bound(at);
  if (it == self.mappings.begin()) return self.mappings.end();
  --it;
  return at < it->first + it->second.size ? it : self.mappings.end();
}

// The reserved range around an address; null if there is none.
const std::pair<const Address, Reserved>* reserved_around(Address at) {
  const VirtualMemory& self = memory_maps();
  auto range = self.reserved.upper_bound(at);
  if (range == self.reserved.begin()) return nullptr;
  --range;
  return at < range->first + range->second.size ? &*range : nullptr;
}

}  // namespace

bool is_ours(Address at) {
  return reserved_around(at) != nullptr || block_around(reinterpret_cast<const void*>(at)).has_value();
}

Address first_unmapped(Address begin, Address end) {
  while (begin < end) {
    if (!is_device(begin)) return 0;
    if (const auto mapping = mapping_around(begin); mapping != memory_maps().mappings.end()) {
      begin = mapping->first + mapping->second.size;
    } else if (const auto block = block_around(reinterpret_cast<const void*>(begin))) {
      begin = block->at + block->size;
    } else {
      return begin;
    }
  }
  return 0;
}

int card_of_mapping(Address at, Address* begin, std::size_t* size) {
  const auto it = mapping_around(at);
  if (it == memory_maps().mappings.end()) return -1;
  if (begin != nullptr) *begin = it->first;
  if (size != nullptr) *size = it->second.size;
  const auto pages = memory_maps().pages.find(it->second.handle);
  return pages == memory_maps().pages.end() || pages->second.card < 0 ? 0 : pages->second.card;
}

ULLAGE_CARD_API int cuMemGetAllocationGranularity(std::size_t* size, const AllocationProperties*, int) {
  *size = kPage;
  return kSuccess;
}

ULLAGE_CARD_API int cuMemAddressReserve(Address* at, std::size_t size, std::size_t alignment, Address wanted,
                                        unsigned long long) {
  const int card = current_card();
  if (const Error error = use_card(card); error != kSuccess) return error;
  if (size == 0 || size % kPage != 0) return kInvalidValue;
  const std::lock_guard hold(lock());
  const Address place = take_addresses(card, size, alignment > kPage ? alignment : kPage,
                                       card_of_address(wanted) == card ? wanted / kPage * kPage : 0);
  if (place == 0) return kOutOfMemory;
  memory_maps().reserved[place] = {size, card};
  *at = place;
  return kSuccess;
}

ULLAGE_CARD_API int cuMemAddressFree(Address at, std::size_t size) {
  const std::lock_guard hold(lock());
  VirtualMemory& self = memory_maps();
  const auto it = self.reserved.find(at);
  if (it == self.reserved.end() || it->second.size != size) return kInvalidValue;
  const auto mapping = self.mappings.lower_bound(at);
  if (mapping != self.mappings.end() && mapping->first < at + size) return kInvalidValue;
  give_addresses(it->second.card, at, size);
  self.reserved.erase(it);
  return kSuccess;
}

ULLAGE_CARD_API int cuMemCreate(Handle* handle, std::size_t size, const AllocationProperties* properties,
                                unsigned long long) {
  constexpr int kFabric = 8;  // handles for fabrics between machines
  if (size == 0 || size % kPage != 0) return kInvalidValue;
  if ((properties->handle_types & kFabric) != 0) return kNotSupported;
  const int card = properties->location.type == kOnDevice ? properties->location.id : -1;
  if (const Error error = use_card(card >= 0 ? card : current_card()); error != kSuccess) return error;
  const std::lock_guard hold(lock());
  if (card >= 0 && !charge(card, size, size)) return kOutOfMemory;
  VirtualMemory& self = memory_maps();
  *handle = self.next++;
  self.pages[*handle] = {size, card, 1, properties->handle_types};
  return kSuccess;
}

ULLAGE_CARD_API int cuMemRelease(Handle handle) {
  const std::lock_guard hold(lock());
  if (drop(memory_maps(), handle)) return kSuccess;
  note_finding("cuMemRelease: there is no page with this handle");
  return kInvalidValue;
}

ULLAGE_CARD_API int cuMemMap(Address at, std::size_t size, std::size_t offset, Handle handle, unsigned long long) {
  const std::lock_guard hold(lock());
  VirtualMemory& self = memory_maps();
  auto range = self.reserved.upper_bound(at);
  const auto pages = self.pages.find(handle);
  if (range == self.reserved.begin() || pages == self.pages.end() || size == 0) return kInvalidValue;
  --range;
  if (at + size > range->first + range->second.size || offset + size > pages->second.size) return kInvalidValue;
  const auto next = self.mappings.lower_bound(at);
  const bool meets_next = next != self.mappings.end() && next->first < at + size;
  if (meets_next || mapping_around(at) != self.mappings.end()) {
    note_finding("cuMemMap: something is mapped at %#zx already", at);
    return kInvalidValue;
  }
  ++pages->second.references;
  self.mappings[at] = {size, handle};
  return kSuccess;
}

// Unmaps any number of whole mappings in one call, as the driver does.
ULLAGE_CARD_API int cuMemUnmap(Address at, std::size_t size) {
  const std::lock_guard hold(lock());
  VirtualMemory& self = memory_maps();
  auto it = self.mappings.lower_bound(at);
  if (it == self.mappings.end() || it->first != at) {
    note_finding("cuMemUnmap: nothing is mapped at %#zx", at);
    return kInvalidValue;
  }
  check_unused(at, size, "cuMemUnmap");
  while (it != self.mappings.end() && it->first < at + size) {
    if (it->first + it->second.size > at + size) return kInvalidValue;
    drop(self, it->second.handle);
    it = self.mappings.erase(it);
  }
  return kSuccess;
}

ULLAGE_CARD_API int cuMemSetAccess(Address at, std::size_t, const AccessDescription*, std::size_t) {
  const std::lock_guard hold(lock());
  return mapping_around(at) != memory_maps().mappings.end() ? kSuccess : kInvalidValue;
}

ULLAGE_CARD_API int cuMemGetAccess(unsigned long long* flags, const Location*, Address at) {
  const std::lock_guard hold(lock());
  *flags = mapping_around(at) != memory_maps().mappings.end() ? 3 : 0;  // read and write, or none
  return kSuccess;
}

ULLAGE_CARD_API int cuMemRetainAllocationHandle(Handle* handle, void* place) {
  const std::lock_guard hold(lock());
  VirtualMemory& self = memory_maps();
  const auto it = mapping_around(reinterpret_cast<Address>(place));
  if (it == self.mappings.end()) return kInvalidValue;
  *handle = it->second.handle;
  const auto pages = self.pages.find(*handle);
  if (pages != self.pages.end()) ++pages->second.references;
  return kSuccess;
}

ULLAGE_CARD_API int cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties, Handle handle) {
  const std::lock_guard hold(lock());
  const auto it = memory_maps().pages.find(handle);
  if (it == memory_maps().pages.end()) return kInvalidValue;
  *properties = {};
  properties->type = 1;  // pinned
  properties->handle_types = it->second.handle_types;
  properties->location = {kOnDevice, it->second.card >= 0 ? it->second.card : 0};
  return kSuccess;
}

// Sharing pages with other processes is not supported, because processes do not share a card's address space here.
ULLAGE_CARD_API int cuMemExportToShareableHandle(void*, Handle, int, unsigned long long) { return kNotSupported; }
ULLAGE_CARD_API int cuMemImportFromShareableHandle(Handle*, void*, int) { return kNotSupported; }

}  // namespace ullage::drycard
