// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes the memory that a budget limits, as a session sees it: the process's, or a card's (card_device.h). The
// store and the pager on top of it are the same for both.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/store/driver_calls.h"
#include "ullage/store/os_pages.h"
#include "ullage/store/pager.h"
#include "ullage/store/pages.h"
#include "ullage/store/spill_file.h"

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>

namespace ullage::store {
struct LedgerSlot;
}

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

  // Bytes of it that the process holds, in all allocators together: now, and the peak so far. A person sees the same
  // figures in the tools of the operating system, or in nvidia-smi.
  virtual Bytes held() = 0;
  virtual Bytes held_peak() = 0;
  // Bytes that libraries are expected to take in a program's first steps, in addition to those that they hold at the
  // start.
  virtual Bytes warm_up() const = 0;
  // How often held() must be measured so that the growth between two looks stays within the margin.
  virtual std::chrono::milliseconds between_looks() const = 0;

  // Is it the memory that the process's heap and its libraries take?
  virtual bool is_the_process() const = 0;
  // Does a child made by fork get a copy of its contents?
  virtual bool is_kept_by_forks() const = 0;
  // Does an access to bytes that were moved out cause a fault that brings them back?
  virtual bool heals_faults() const = 0;

  // Opens the tier for bytes that do not fit; called once. Null: there is none. `place.most` of zero: no disk is used.
  virtual Result<store::Tier*> open_tier(const store::SpillPlace& place) = 0;
  // Settings for a pager on this memory; call it after open_tier(). Their callbacks refer to this object.
  virtual store::Pager::Settings pager_settings() = 0;
  // Makes the pool torch's allocator for this memory. On a card does nothing: the allocator there calls the pool.
  virtual void install(Pool& pool) = 0;

  // Waits until the device has done all the work that it was given.
  virtual void synchronize() = 0;
  // Tracks the work that the device was given; null: the kernels of an op have run when it ends.
  virtual CardWork* work() { return nullptr; }
  // Marks storages whose bytes are away; null: a fault notices an access to them, or nothing moves.
  virtual StorageMarks* marks() { return nullptr; }

  // Calls of the card's driver so far; none: this is no card.
  virtual std::optional<store::DriverCalls> driver_calls() const { return std::nullopt; }
  // Writes the figures that only this kind of memory has.
  virtual void write_figures(store::LedgerSlot&) const {}

  // The process ends. ending() is called before the last figures are taken, ended() after that.
  virtual void ending(store::Pager& pager) = 0;
  virtual void ended(store::Pager& pager) = 0;
};

// Resident bytes of this process, with a spill file on disk as the tier below.
class ProcessMemory final : public BudgetedDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::kCPU); }
  store::Pages& pages() override { return pages_; }
  plan::StandsOn stands_on() const override { return {}; }
  Bytes held() override;
  Bytes held_peak() override;
  Bytes warm_up() const override;
  // Growth of 8 MiB (the margin) in 8 ms is a gigabyte a second.
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
