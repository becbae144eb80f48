// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one device of the stand-in CUDA runtime: memory that is only counted, addresses that nothing may touch, and
// events that complete after so many questions. The runtime's functions (fake_cudart.cpp) and the driver's
// (fake_driver.cpp) are faces of it. Every handle is checked, so that a wrong call of the allocator fails.

#include "fake_cudart.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ullage::oracle {

// The page of a real device: addresses and sizes are multiples of it.
inline constexpr std::uint64_t kPage = 2u << 20;

class FakeDevice final {
 public:
  // Never destroyed: the allocator may call after static objects are gone.
  static FakeDevice& instance();

  FakeDeviceSettings settings{};
  FakeDeviceCounters counters{};
  std::recursive_mutex lock;

  // Counts `size` bytes as taken, or counts a refusal.
  bool charge(std::uint64_t size);
  void discharge(std::uint64_t size) { counters.used -= size; }

  std::uint64_t take_addresses(std::uint64_t size);
  void give_addresses(std::uint64_t at, std::uint64_t size);

  // cudaMalloc: address to size.
  std::map<std::uint64_t, std::uint64_t> allocations;

  // cuMemAddressReserve, cuMemCreate, cuMemMap.
  struct Physical {
    std::uint64_t size;
    int references;  // the handle itself and each map of it
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

  // One reference less; at none the bytes are free again. False: there is no such handle.
  bool drop(std::uint64_t handle);

 private:
  std::uint64_t next_ = kFakeBaseAddress;
  std::map<std::uint64_t, std::uint64_t> holes_;  // given back below next_; address to size, never two in touch
};

}  // namespace ullage::oracle
