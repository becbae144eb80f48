// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory that a budget is of, as a session sees it: the process's, or a card's (card_device.h). What stands on it
// and where it goes that does not fit is the same for both: store and pager.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/store/os_pages.h"
#include "ullage/store/pages.h"
#include "ullage/store/spill_file.h"
#include "ullage/store/store.h"

#include <c10/core/Device.h>

#include <memory>

namespace ullage::runtime {

class CardWork;

class BudgetedDevice {
 public:
  virtual ~BudgetedDevice() = default;

  virtual c10::Device device() const = 0;
  bool is_card() const { return !device().is_cpu(); }
  virtual store::Pages& pages() = 0;

  // What the process holds of it, all allocators together, as a person is shown it: now, and the most so far.
  virtual Bytes held() = 0;
  virtual Bytes held_peak() = 0;
  // What libraries are expected to take of it in a program's first steps, beside what they hold at the start.
  virtual Bytes warm_up() const = 0;

  // Where what does not fit goes; called once. Null: nowhere. `place` of no bytes: to no disk.
  virtual Result<store::Tier*> open_tier(const store::SpillPlace& place) = 0;

  // Is an access of what was moved out noticed, and served?
  virtual bool heals_faults() const = 0;
  // Waits until the device has done all that it was given.
  virtual void synchronize() {}
  // Smaller storages have no pages of their own, and never move.
  virtual Bytes least_movable() const = 0;
  // Who is to be told of what it was given to do; null: ops have run when they end.
  virtual CardWork* work() { return nullptr; }
};

// Resident bytes of this process, and the disk below them.
class ProcessMemory final : public BudgetedDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::kCPU); }
  store::Pages& pages() override { return pages_; }
  Bytes held() override;
  Bytes held_peak() override;
  Bytes warm_up() const override;
  Result<store::Tier*> open_tier(const store::SpillPlace& place) override;
  bool heals_faults() const override { return true; }
  Bytes least_movable() const override { return store::Store::kLeastRange; }

 private:
  store::OsPages pages_;
  std::unique_ptr<store::SpillFile> spill_;
};

}  // namespace ullage::runtime
