// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one device of the stand-in CUDA runtime. Its memory is only counted, and its addresses must not be accessed. The
// runtime's functions (fake_cudart.cpp) and the driver's (fake_driver.cpp) work on it. Every handle is checked, so that
// a wrong call by the allocator fails.

#include "fake_cudart.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ullage::oracle {

// The page size of a real device. Addresses and sizes are multiples of it.
inline constexpr std::uint64_t kPage = 2u << 20;

class FakeDevice final {
 public:
  // Never destroyed, because the allocator may call it after static objects are destroyed.
  static FakeDevice& instance();

  FakeDeviceSettings settings{};
  FakeDeviceCounters counters{};
  std::recursive_mutex lock;

  // Counts `size` bytes as taken, or counts a refusal.
  bool charge(std::uint64_t size);
  void discharge(std::uint64_t size) { counters.used -= size; }

  std::uint64_t take_addresses(std::uint64_t size);
  void give_addresses(std::uint64_t at, std::uint64_t size);

  // Of cudaMalloc: address to size.
  std::map<std::uint64_t, std::uint64_t> allocations;

  // Of cuMemAddressReserve, cuMemCreate and cuMemMap.
  struct Physical {
    std::uint64_t size;
    int references;  // one for the handle itself and one for each map
  };
  struct Map {
    std::uint64_t size;
    std::uint64_t handle;
  };
  std::map<std::uint64_t, std::uint64_t> ranges;  // address to size
  std::unordered_map<std::uint64_t, Physical> physical;
  std::map<std::uint64_t, Map> maps;  // by address
  std::uint64_t next_handle = 1;
  std::uint64_t next_stream = 0x1000;

  // Removes a reference. When none is left, the bytes are free again. Returns false if there is no such handle.
  bool drop(std::uint64_t handle);

 private:
  std::uint64_t next_ = kFakeBaseAddress;
  std::map<std::uint64_t, std::uint64_t> holes_;  // free ranges below next_: address to size; neighbours are merged
};

}  // namespace ullage::oracle
