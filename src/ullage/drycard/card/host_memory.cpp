// SPDX-License-Identifier: Apache-2.0
// Pinned host memory. It is real memory and is counted, but not locked, because no card reads it.

#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/work.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ullage::drycard {
namespace {

constexpr std::size_t kHostPage = 4096;

void count_pinned(std::size_t size) { raise(ledger().pinned_peak, ledger().pinned.fetch_add(size) + size); }

// Is all of it mapped, private and without a file?
bool is_private(Address begin, Address end) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  char line[512];
  Address at = begin;  // [begin, at) is
  while (at < end && std::fgets(line, sizeof line, maps) != nullptr) {
    char* rest = line;  // "from-to rights offset device inode path"
    const Address from = std::strtoul(rest, &rest, 16);
    const Address to = std::strtoul(rest + 1, &rest, 16);
    if (to <= at) continue;
    const char* const rights = strtok_r(rest, " ", &rest);
    strtok_r(rest, " ", &rest);  // offset
    strtok_r(rest, " ", &rest);  // device
    const char* const file = strtok_r(rest, " \n", &rest);
    if (from > at || file == nullptr || rights[3] != 'p' || std::strtoul(file, nullptr, 10) != 0) break;
    at = to;
  }
  std::fclose(maps);
  return at >= end;
}

Error allocate_host(void** place, std::size_t bytes) {
  *place = nullptr;
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes == 0) return kSuccess;
  const std::size_t size = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  void* made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  const std::lock_guard hold(lock());
  Block block{reinterpret_cast<Address>(made), size, bytes, current_card(), Block::Kind::HostAllocated};
  block.private_host = true;
  add_block(block);
  count_pinned(size);
  *place = made;
  return kSuccess;
}

Error free_host(void* place) {
  if (place == nullptr) return kSuccess;
  const std::lock_guard hold(lock());
  const auto block = block_at(reinterpret_cast<Address>(place));
  if (!block || block->kind != Block::Kind::HostAllocated) return kInvalidValue;
  remove_block(block->at);
  ledger().pinned.fetch_sub(block->size);
  ::munmap(place, block->size);
  return kSuccess;
}

Error register_host(void* place, std::size_t bytes) {
  constexpr auto kAlreadyRegistered = static_cast<Error>(712);
  if (const Error error = use_current(); error != kSuccess) return error;
  if (place == nullptr || bytes == 0) return kInvalidValue;
  const std::lock_guard hold(lock());
  if (block_around(place)) return kAlreadyRegistered;
  Block block{reinterpret_cast<Address>(place), bytes, bytes, current_card(), Block::Kind::HostRegistered};
  block.private_host = bytes >= kPage && is_private(block.at, block.at + bytes);
  add_block(block);
  count_pinned(bytes);
  return kSuccess;
}

Error unregister_host(void* place) {
  constexpr auto kNotRegistered = static_cast<Error>(713);
  const std::lock_guard hold(lock());
  const auto block = block_at(reinterpret_cast<Address>(place));
  if (!block || block->kind != Block::Kind::HostRegistered) return kNotRegistered;
  check_unused(block->at, block->size, "an unlocking");
  ledger().pinned.fetch_sub(block->size);
  remove_block(block->at);
  return kSuccess;
}

bool is_host(Block::Kind kind) { return kind == Block::Kind::HostAllocated || kind == Block::Kind::HostRegistered; }

// Returns the kind of memory at any address, and the card that it belongs to.
PointerAttributes attributes_of(const void* place) {
  const auto at = reinterpret_cast<Address>(place);
  void* pointer = const_cast<void*>(place);
  const std::lock_guard hold(lock());
  if (is_device(at)) {
    int card = card_of_mapping(at, nullptr, nullptr);
    if (card < 0) {
      const auto block = block_around(place);
      card = block ? block->card : card_of_address(at);
    }
    return {kDevice, card, pointer, nullptr};
  }
  const auto block = block_around(place);
  if (!block) return {kUnregistered, machine().cuda >= 13 ? -2 : -1, nullptr, pointer};
  return {block->kind == Block::Kind::Managed ? kManaged : kHost, block->card, pointer, pointer};
}

}  // namespace

ULLAGE_CARD_API int cudaHostAlloc(void** place, std::size_t bytes, unsigned) {
  return noted(allocate_host(place, bytes));
}
ULLAGE_CARD_API int cudaMallocHost(void** place, std::size_t bytes) { return noted(allocate_host(place, bytes)); }
ULLAGE_CARD_API int cudaFreeHost(void* place) { return noted(free_host(place)); }
ULLAGE_CARD_API int cudaHostRegister(void* place, std::size_t bytes, unsigned) {
  return noted(register_host(place, bytes));
}
ULLAGE_CARD_API int cudaHostUnregister(void* place) { return noted(unregister_host(place)); }

ULLAGE_CARD_API int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
ULLAGE_CARD_API int cudaHostGetFlags(unsigned* flags, void*) {
  *flags = 0;
  return kSuccess;
}

ULLAGE_CARD_API int cudaPointerGetAttributes(void* attributes, const void* place) {
  if (attributes == nullptr) return noted(kInvalidValue);
  if (machine().cuda >= 13) std::memset(attributes, 0, kPointerAttributes13);
  const PointerAttributes made = attributes_of(place);
  std::memcpy(attributes, &made, sizeof made);
  return kSuccess;
}

ULLAGE_CARD_API int cuMemAllocHost_v2(void** place, std::size_t bytes) { return allocate_host(place, bytes); }
ULLAGE_CARD_API int cuMemHostAlloc(void** place, std::size_t bytes, unsigned) { return allocate_host(place, bytes); }
ULLAGE_CARD_API int cuMemFreeHost(void* place) { return free_host(place); }
ULLAGE_CARD_API int cuMemHostRegister_v2(void* place, std::size_t bytes, unsigned) {
  return register_host(place, bytes);
}
ULLAGE_CARD_API int cuMemHostUnregister(void* place) { return unregister_host(place); }
ULLAGE_CARD_API int cuMemHostGetDevicePointer_v2(Address* device, void* host, unsigned) {
  *device = reinterpret_cast<Address>(host);
  return kSuccess;
}
ULLAGE_CARD_API int cuMemHostGetFlags(unsigned* flags, void*) {
  *flags = 0;
  return kSuccess;
}

// CUpointer_attribute
ULLAGE_CARD_API int cuPointerGetAttribute(void* value, int attribute, Address at) {
  const std::lock_guard hold(lock());
  const void* place = reinterpret_cast<const void*>(at);
  const PointerAttributes known = attributes_of(place);
  if (known.type == kUnregistered) return kInvalidValue;
  const auto block = block_around(place);
  const auto put = [value](auto what) {
    std::memcpy(value, static_cast<const void*>(&what), sizeof what);
    return kSuccess;
  };
  switch (attribute) {
    case 1:
      return put(reinterpret_cast<void*>(Address{0x1000} * static_cast<Address>(known.device + 1)));
    case 2:
      return put(block && is_host(block->kind) ? 1U : 2U);
    case 3:
      return put(at);
    case 4:
      return known.host_pointer != nullptr ? put(known.host_pointer) : kInvalidValue;
    case 6:
      return put(0);
    case 7:
      return put(block ? block->id : std::uint64_t{at});
    case 8:
      return put(known.type == kManaged ? 1U : 0U);
    case 9:
      return put(known.device);
    case 10:
      return put(block && block->kind == Block::Kind::Device ? 1 : 0);
    case 11:
    case 12: {
      Address begin = 0;
      std::size_t size = 0;
      if (card_of_mapping(at, &begin, &size) < 0 && block) {
        begin = block->at;
        size = block->asked;
      }
      return attribute == 11 ? put(begin) : put(size);
    }
    case 13:
      return put(1);
    case 14:
    case 15:
      return put(0);
    case 16:
      return put(3);  // read and write
    case 17:
      return put(block ? static_cast<void*>(block->pool) : nullptr);
    default:
      return kInvalidValue;
  }
}

ULLAGE_CARD_API int cuPointerGetAttributes(unsigned count, const int* attributes, void** values, Address at) {
  for (unsigned i = 0; i < count; ++i) cuPointerGetAttribute(values[i], attributes[i], at);
  return kSuccess;
}

ULLAGE_CARD_API int cuPointerSetAttribute(const void*, int, Address) { return kSuccess; }

}  // namespace ullage::drycard
