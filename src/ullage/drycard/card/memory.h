// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the allocations of this process: memory of its cards (address space that is only counted), managed memory, and
// pinned host memory (both real).

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/process.h"

#include <optional>

namespace ullage::drycard {

// Memory is counted in whole pages of 2 MiB, as a driver maps it. On a real card smaller requests share pages; torch
// makes no such requests.
inline constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t in_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class MemoryPool;

struct Block {
  enum class Kind {
    Device,          // cudaMalloc
    Managed,         // cudaMallocManaged
    HostAllocated,   // cudaHostAlloc
    HostRegistered,  // cudaHostRegister
    Pooled,          // of a MemoryPool (cudaMallocAsync)
    Borrowed,        // another process's, opened by its IPC handle: it counts for that process alone
  };
  Address at = 0;
  std::size_t size = 0;   // bytes counted
  std::size_t asked = 0;  // bytes that the program asked for
  int card = 0;           // ordinal
  Kind kind = Kind::Device;
  MemoryPool* pool = nullptr;
  bool private_host = false;  // of the host: all of it is private memory without a file
  std::uint64_t id = 0;       // CU_POINTER_ATTRIBUTE_BUFFER_ID: never used again
};

// The caller must hold lock() for these six. take_addresses() returns 0 if the card's address range has no room. It
// counts no bytes, and neither do the others.
Address take_addresses(int ordinal, std::size_t size, std::size_t alignment = kPage, Address wanted = 0);
void give_addresses(int ordinal, Address at, std::size_t size);
void add_block(const Block& block);
std::optional<Block> block_at(Address begin);          // the block that begins there
std::optional<Block> block_around(const void* place);  // the block that `place` is in
void remove_block(Address begin);

// allocate() serves cudaMalloc and similar calls; kOutOfMemory if the bytes do not fit. Zero bytes give success and the
// address 0. release() frees a block of any kind but host memory; kInvalidValue if no such block begins there. Both
// take lock() themselves.
Error allocate(int ordinal, std::size_t bytes, Address* at);
Error release(Address at);

// Is this an address of memory that the program has allocated or reserved? The caller must hold lock().
bool is_ours(Address at);
// Returns the first address in [begin, end) of a card at which nothing is mapped or allocated; 0 if there is none. The
// caller must hold lock().
Address first_unmapped(Address begin, Address end);

// Returns the ordinal of the card whose mapped pages (virtual_memory.cpp) are at that address; -1 if nothing is mapped
// there. Pages of host memory count as those of card 0. `begin` and `size` get the mapping; both may be null. The
// caller must hold lock().
int card_of_mapping(Address at, Address* begin, std::size_t* size);

}  // namespace ullage::drycard
