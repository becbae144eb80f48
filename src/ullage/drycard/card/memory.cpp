// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/memory.h"

#include "ullage/drycard/card/address_ranges.h"
#include "ullage/drycard/card/memory_pool.h"
#include "ullage/drycard/card/work.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace ullage::drycard {
namespace {

struct Memory {
  std::map<Address, Block> blocks;
  AddressRanges free[kMostCards];
  bool ready[kMostCards]{};
  std::uint64_t next_id = 1;
};

Memory& memory() {
  static Memory* made = new Memory;
  return *made;
}

AddressRanges& free_addresses(int ordinal) {
  Memory& self = memory();
  AddressRanges& ranges = self.free[ordinal];
  if (!self.ready[ordinal]) {
    const Span span = span_of(ordinal);
    // Leaves out the first page, so that an address just past one card's part never belongs to the next card.
    ranges.add((span.begin + kPage - 1) / kPage * kPage + kPage, span.end / kPage * kPage);
    self.ready[ordinal] = true;
  }
  return ranges;
}

Error allocate_managed(std::size_t bytes, void** place) {
  *place = nullptr;
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes == 0) return kInvalidValue;
  const std::lock_guard hold(lock());
  const int card = current_card();
  const std::size_t size = in_pages(bytes);
  if (!charge(card, size, bytes)) return kOutOfMemory;
  void* made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    discharge(card, size);
    return kOutOfMemory;
  }
  ledger().card[static_cast<std::size_t>(machine().card_of[card])].managed.fetch_add(size);
  add_block({reinterpret_cast<Address>(made), size, bytes, card, Block::Kind::Managed});
  *place = made;
  return kSuccess;
}

}  // namespace

Address take_addresses(int ordinal, std::size_t size, std::size_t alignment, Address wanted) {
  return free_addresses(ordinal).take(size, alignment, wanted);
}

void give_addresses(int ordinal, Address at, std::size_t size) { free_addresses(ordinal).give(at, size); }

void add_block(const Block& block) {
  Memory& self = memory();
  Block& made = self.blocks[block.at] = block;
  made.id = self.next_id++;
}

std::optional<Block> block_at(Address begin) {
  const auto it = memory().blocks.find(begin);
  return it == memory().blocks.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Block> block_around(const void* place) {
  const auto at = reinterpret_cast<Address>(place);
  auto it = memory().blocks.upper_bound(at);
  if (it == memory().blocks.begin()) return std::nullopt;
  --it;
  return at < it->first + std::max(it->second.size, std::size_t{1}) ? std::optional(it->second) : std::nullopt;
}

void remove_block(Address begin) { memory().blocks.erase(begin); }

Error allocate(int ordinal, std::size_t bytes, Address* at) {
  *at = 0;
  if (const Error error = use_card(ordinal); error != kSuccess) return error;
  if (bytes == 0) return kSuccess;
  const std::lock_guard hold(lock());
  if (bytes > (std::size_t{1} << 50)) return charge(ordinal, bytes, bytes) ? kSuccess : kOutOfMemory;
  const std::size_t size = in_pages(bytes);
  if (!charge(ordinal, size, bytes)) {
    // Like the driver: before a request fails, idle bytes of the pools are given back.
    trim_pools(ordinal);
    if (free_bytes(ordinal) < size || !charge(ordinal, size, bytes)) return kOutOfMemory;
  }
  const Address place = take_addresses(ordinal, size);
  if (place == 0) {
    discharge(ordinal, size);
    return kOutOfMemory;
  }
  add_block({place, size, bytes, ordinal, Block::Kind::Device});
  *at = place;
  return kSuccess;
}

Error release(Address at) {
  if (at == 0) return kSuccess;
  const std::lock_guard hold(lock());
  const auto block = block_at(at);
  if (!block) return kInvalidValue;
  switch (block->kind) {
    case Block::Kind::Device:
      discharge(block->card, block->size);
      give_addresses(block->card, at, block->size);
      break;
    case Block::Kind::Managed:
      discharge(block->card, block->size);
      ledger().card[static_cast<std::size_t>(machine().card_of[block->card])].managed.fetch_sub(block->size);
      ::munmap(reinterpret_cast<void*>(at), block->size);
      break;
    case Block::Kind::Borrowed:
      give_addresses(block->card, at, block->size);
      break;
    case Block::Kind::Pooled:
      return block->pool->give(at);
    case Block::Kind::HostAllocated:
    case Block::Kind::HostRegistered:
      return kInvalidValue;
  }
  remove_block(at);
  return kSuccess;
}

ULLAGE_CARD_API int cudaMalloc(void** place, std::size_t bytes) {
  if (place == nullptr) return noted(kInvalidValue);
  Address at = 0;
  const Error error = allocate(current_card(), bytes, &at);
  *place = reinterpret_cast<void*>(at);
  return noted(error);
}

// Many programs begin with cudaFree(0) to make the context.
ULLAGE_CARD_API int cudaFree(void* place) {
  if (const Error error = use_current(); error != kSuccess) return noted(error);
  finish_all();
  return noted(release(reinterpret_cast<Address>(place)));
}

ULLAGE_CARD_API int cudaMallocManaged(void** place, std::size_t bytes, unsigned) {
  return noted(allocate_managed(bytes, place));
}

constexpr std::size_t kPitch = 512;

ULLAGE_CARD_API int cudaMallocPitch(void** place, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cudaMalloc(place, *pitch * height);
}

ULLAGE_CARD_API int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const Error error = use_current(); error != kSuccess) return noted(error);
  if (free != nullptr) *free = free_bytes(current_card());
  if (total != nullptr) *total = machine().model.total;
  return kSuccess;
}

// Memory shared between processes. The borrower gets addresses of its own; the bytes count for the lender alone. The
// handle says on which card the memory is and how large it is.
struct IpcContent {
  std::uint64_t magic;
  std::uint64_t size;
  std::int32_t card;
};
constexpr std::uint64_t kIpcMagic = 0x6970'6364'7279'0001;

ULLAGE_CARD_API int cudaIpcGetMemHandle(IpcHandle* handle, void* place) {
  const std::lock_guard hold(lock());
  const auto block = block_around(place);
  if (!block || block->kind == Block::Kind::HostAllocated) return noted(kInvalidValue);
  const IpcContent content{kIpcMagic, block->size, machine().card_of[block->card]};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->bytes, &content, sizeof content);
  return kSuccess;
}

ULLAGE_CARD_API int cudaIpcOpenMemHandle(void** place, IpcHandle handle, unsigned) {
  IpcContent content;
  std::memcpy(&content, handle.bytes, sizeof content);
  if (content.magic != kIpcMagic) return noted(kInvalidHandle);
  const int ordinal = current_card();
  if (const Error error = use_card(ordinal); error != kSuccess) return noted(error);
  const std::lock_guard hold(lock());
  const Address at = take_addresses(ordinal, in_pages(content.size));
  if (at == 0) return noted(kOutOfMemory);
  add_block({at, in_pages(content.size), content.size, ordinal, Block::Kind::Borrowed});
  *place = reinterpret_cast<void*>(at);
  return kSuccess;
}

ULLAGE_CARD_API int cudaIpcCloseMemHandle(void* place) { return noted(release(reinterpret_cast<Address>(place))); }

ULLAGE_CARD_API int cuMemAlloc_v2(Address* at, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  return allocate(current_card(), bytes, at);
}

ULLAGE_CARD_API int cuMemFree_v2(Address at) { return release(at); }

ULLAGE_CARD_API int cuMemAllocManaged(Address* at, std::size_t bytes, unsigned) {
  return allocate_managed(bytes, reinterpret_cast<void**>(at));
}

ULLAGE_CARD_API int cuMemAllocPitch_v2(Address* at, std::size_t* pitch, std::size_t width, std::size_t height,
                                       unsigned) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return allocate(current_card(), *pitch * height, at);
}

ULLAGE_CARD_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) { return cudaMemGetInfo(free, total); }

ULLAGE_CARD_API int cuMemGetAddressRange_v2(Address* begin, std::size_t* size, Address at) {
  const std::lock_guard hold(lock());
  Address from = 0;
  std::size_t bytes = 0;
  if (card_of_mapping(at, &from, &bytes) < 0) {
    const auto block = block_around(reinterpret_cast<void*>(at));
    if (!block) return kNotFound;
    from = block->at;
    bytes = block->asked;
  }
  if (begin != nullptr) *begin = from;
  if (size != nullptr) *size = bytes;
  return kSuccess;
}

ULLAGE_CARD_API int cuIpcGetMemHandle(IpcHandle* handle, Address at) {
  return cudaIpcGetMemHandle(handle, reinterpret_cast<void*>(at));
}
ULLAGE_CARD_API int cuIpcOpenMemHandle_v2(Address* at, IpcHandle handle, unsigned flags) {
  return cudaIpcOpenMemHandle(reinterpret_cast<void**>(at), handle, flags);
}
ULLAGE_CARD_API int cuIpcCloseMemHandle(Address at) { return release(at); }

}  // namespace ullage::drycard
