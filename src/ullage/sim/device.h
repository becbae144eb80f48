// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models the memory of a device for the models of allocators above it. It hands out addresses and counts bytes; there
// is no memory behind the addresses.

#include "ullage/base/bytes.h"

#include <cstddef>
#include <map>
#include <optional>

namespace ullage::sim {

class Device {
 public:
  virtual ~Device() = default;

  virtual Bytes total() const = 0;
  virtual Bytes available() const = 0;  // neither allocated nor committed; reserved addresses alone take nothing

  // cudaMalloc and cudaFree. Returns none if the device has less than `size` left.
  virtual std::optional<Address> allocate(Bytes size) = 0;
  virtual void free(Address at, Bytes size) = 0;

  // reserve() returns addresses at which nothing is mapped (cuMemAddressReserve). commit() maps memory at a part of
  // them (cuMemMap). If the device has less than `size` left, commit() returns false and maps nothing.
  virtual Address reserve(Bytes size) = 0;
  virtual void unreserve(Address at, Bytes size) = 0;
  virtual bool commit(Address at, Bytes size) = 0;
  virtual void decommit(Address at, Bytes size) = 0;
};

// Which addresses a simulated device hands out.
enum class Addresses {
  Growing,    // each above all earlier ones; none is used twice
  LowestFit,  // in the lowest gap that is large enough
};

// A device of `total` bytes that no other process uses. Addresses begin at `base`. Each allocation and reservation gets
// whole pages of 2 MiB, so addresses are multiples of 2 MiB if `base` is. allocate() counts these whole pages as taken;
// commit() counts just the bytes asked for. Give free() and the others the size that was asked for.
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
  Address next_;                   // addresses from here on were never handed out
  std::map<Address, Bytes> gaps_;  // given back, below next_; only for LowestFit; no two are adjacent
};

}  // namespace ullage::sim
