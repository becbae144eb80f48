// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tier between a card and the disk: host memory that is locked, so that copies to and from the card go at full
// speed. It is one range of addresses that is locked piece by piece as it fills. A storage goes to the tier below if it
// finds no room here, or if the host locks no more memory.
//
//   0 |=slot=|gap|==slot==|=slot=|.......................| most
//     locked, in pieces of 64 MiB   not yet

#include "ullage/cuda/driver.h"
#include "ullage/store/address_space.h"
#include "ullage/store/tier.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace ullage::cuda {

class HostTier final : public store::Tier {
 public:
  struct Counts {
    Bytes in_use;
    Bytes in_use_peak;
    Bytes locked;
    Bytes passed_down;         // bytes of all slots taken in the tier below so far
    std::string lock_failure;  // why the host locked no more, when it was last asked; empty: it did
  };

  // `most`: bytes of host memory, rounded down to a multiple of 4096; may be zero. `below`: the tier for what does not
  // fit; null: there is none. `driver` and `below` must outlive the result. System: the host has no such addresses.
  static Result<std::unique_ptr<HostTier>> open(Driver& driver, Bytes most, store::Tier* below);
  ~HostTier() override;
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  Result<store::SpillSlot> take(Bytes size) override;
  Status write(const store::SpillSlot& slot, Address from, Sharing sharing, store::CopyGate* gate) override;
  Status read(const store::SpillSlot& slot, Address into) override;
  void give(const store::SpillSlot& slot) override;

  Counts counts() const;

 private:
  HostTier(Driver& driver, store::AddressRange memory, store::Tier* below);

  Result<store::SpillSlot> take_here(Bytes size);
  Status lock_up_to(Bytes end);
  static bool is_here(const store::SpillSlot& slot) { return slot.height > 0; }
  template <class Copy>
  Status in_pieces(const store::SpillSlot& slot, const Copy& copy) const;

  Driver& driver_;
  const store::AddressRange memory_;
  store::Tier* const below_;

  mutable std::mutex mutex_;
  store::AddressSpace vacant_;
  std::uint64_t next_serial_ = 1;
  Counts counts_;
};

}  // namespace ullage::cuda
