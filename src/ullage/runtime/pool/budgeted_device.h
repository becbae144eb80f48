// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory that a budget is of, as a session sees it: the process's, or a card's (card_device.h). What stands on it
// and where it goes that does not fit is the same for both: store and pager.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/store/os_pages.h"
#include "ullage/store/pager.h"
#include "ullage/store/pages.h"
#include "ullage/store/spill_file.h"

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

namespace ullage::runtime {

class CardWork;
class Pool;
class StorageMarks;

class BudgetedDevice {
 public:
  virtual ~BudgetedDevice() = default;

  virtual c10::Device device() const = 0;
  virtual store::Pages& pages() = 0;
  virtual plan::StandsOn stands_on() const = 0;

  // What the process holds of it, all allocators together, as a person is shown it: now, and the most so far.
  virtual Bytes held() = 0;
  virtual Bytes held_peak() = 0;
  // What libraries are expected to take of it in a program's first steps, beside what they hold at the start.
  virtual Bytes warm_up() const = 0;
  // How often held() must be asked, so that what grows between two looks stays within the margin.
  virtual std::chrono::milliseconds between_looks() const = 0;

  // Is it the memory that the process's heap and its libraries take?
  virtual bool is_the_process() const = 0;
  // Does a child made by fork have what stands on it?
  virtual bool is_kept_by_forks() const = 0;
  // Is an access of what was moved out noticed, and served?
  virtual bool heals_faults() const = 0;

  // Where what does not fit goes; called once. Null: nowhere. `place` of no bytes: to no disk.
  virtual Result<store::Tier*> open_tier(const store::SpillPlace& place) = 0;
  // What a pager of it must know; after open_tier(). What is set refers to this.
  virtual store::Pager::Settings pager_settings() = 0;
  // Makes the pool torch's allocator of it, unless one that asks the pool is that already.
  virtual void install(Pool& pool) = 0;

  // Waits until the device has done all that it was given.
  virtual void synchronize() = 0;
  // Who is to be told of what it was given to do; null: ops have run when they end.
  virtual CardWork* work() { return nullptr; }
  // Who says of storages that they are away; null: a touch of them is noticed, or nothing moves.
  virtual StorageMarks* marks() { return nullptr; }

  // The process ends: before the last figures are taken, and after.
  virtual void ending(store::Pager& pager) = 0;
  virtual void ended(store::Pager& pager) = 0;
};

// Resident bytes of this process, and the disk below them.
class ProcessMemory final : public BudgetedDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::kCPU); }
  store::Pages& pages() override { return pages_; }
  plan::StandsOn stands_on() const override { return {}; }
  Bytes held() override;
  Bytes held_peak() override;
  Bytes warm_up() const override;
  // What grows by 8 MiB in 8 ms grows by a gigabyte a second.
  std::chrono::milliseconds between_looks() const override { return std::chrono::milliseconds{8}; }
  bool is_the_process() const override { return true; }
  bool is_kept_by_forks() const override { return true; }
  bool heals_faults() const override { return true; }
  Result<store::Tier*> open_tier(const store::SpillPlace& place) override;
  store::Pager::Settings pager_settings() override { return {}; }
  void install(Pool& pool) override;
  void synchronize() override {}
  void ending(store::Pager&) override {}
  void ended(store::Pager& pager) override;

 private:
  store::OsPages pages_;
  std::unique_ptr<store::SpillFile> spill_;
};

}  // namespace ullage::runtime
