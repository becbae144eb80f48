// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device below an allocator, as far as placement sees it: so many bytes, and addresses. No memory is behind them.

#include "ullage/base/bytes.h"

#include <cstddef>
#include <map>
#include <optional>

namespace ullage::sim {

class Device {
 public:
  virtual ~Device() = default;

  virtual Bytes total() const = 0;
  virtual Bytes available() const = 0;  // neither allocated nor committed

  // cudaMalloc and cudaFree. None: the device has not so much left.
  virtual std::optional<Address> allocate(Bytes size) = 0;
  virtual void free(Address at, Bytes size) = 0;

  // Addresses with nothing behind them (cuMemAddressReserve), and bytes put behind a part of them (cuMemMap): all or,
  // where the device has not so much left, none.
  virtual Address reserve(Bytes size) = 0;
  virtual void unreserve(Address at, Bytes size) = 0;
  virtual bool commit(Address at, Bytes size) = 0;
  virtual void decommit(Address at, Bytes size) = 0;
};

// Which addresses a simulated device hands out.
enum class Addresses {
  Growing,    // each above all before, none twice
  LowestFit,  // the lowest gap that is large enough
};

// A device of `total` bytes with no other user. Addresses begin at `base` and are multiples of 2 MiB if it is one.
class SimulatedDevice final : public Device {
 public:
  static constexpr Bytes kPage = 2_MiB;

  explicit SimulatedDevice(Bytes total, Addresses addresses = Addresses::Growing, Address base = Address{1ull << 45})
      : total_(total), addresses_(addresses), next_(base) {}

  Bytes total() const override { return total_; }
  Bytes available() const override { return total_ - used_; }
  std::optional<Address> allocate(Bytes size) override;
  void free(Address at, Bytes size) override;
  Address reserve(Bytes size) override;
  void unreserve(Address at, Bytes size) override;
  bool commit(Address at, Bytes size) override;
  void decommit(Address at, Bytes size) override;

 private:
  Address take(Bytes size);
  void give(Address at, Bytes size);

  const Bytes total_;
  const Addresses addresses_;
  Bytes used_;
  Address next_;                   // all addresses from here on were never handed out
  std::map<Address, Bytes> gaps_;  // below next_, for LowestFit alone; no two touch
};

}  // namespace ullage::sim
