// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is allocated in this process: on its cards (address space that is only counted), managed memory and locked host
// memory (real).

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/process.h"

#include <optional>

namespace ullage::drycard {

// Memory is counted in the pages that a driver maps. Requests below that share pages on a real card; torch makes none.
inline constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t in_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class MemoryPool;

struct Block {
  enum class Kind { Device, Managed, HostAllocated, HostRegistered, Pooled, Borrowed };
  Address at = 0;
  std::size_t size = 0;   // as it is counted
  std::size_t asked = 0;  // as the program asked
  int card = 0;           // ordinal
  Kind kind = Kind::Device;
  MemoryPool* pool = nullptr;
  std::uint64_t id = 0;  // CU_POINTER_ATTRIBUTE_BUFFER_ID: never the same again
};

// All of them under lock().
Address take_addresses(int ordinal, std::size_t size, std::size_t alignment = kPage, Address wanted = 0);
void give_addresses(int ordinal, Address at, std::size_t size);
void add_block(const Block& block);
std::optional<Block> block_at(Address begin);          // that begins there
std::optional<Block> block_around(const void* place);  // that `place` is in
void remove_block(Address begin);

// cudaMalloc and its kind on a card. kOutOfMemory where it does not fit.
Error allocate(int ordinal, std::size_t bytes, Address* at);
Error release(Address at);

// The ordinal of the card whose mapped pages (virtual_memory.cpp) are there; -1: none.
int card_of_mapping(Address at, Address* begin, std::size_t* size);

}  // namespace ullage::drycard
