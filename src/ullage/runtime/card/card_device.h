// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a card's memory a budgeted device. Its pages come from the card's driver, and the bytes held are those that
// nvidia-smi shows for this process. Storages that do not fit go to locked host memory, and from there to the disk if
// that is full.

#include "ullage/runtime/pool/budgeted_device.h"
#include "ullage/runtime/pool/card_work.h"
#include "ullage/runtime/pool/storage_marks.h"

#include "ullage/cuda/card_pages.h"
#include "ullage/cuda/card_use.h"
#include "ullage/cuda/driver.h"
#include "ullage/cuda/host_tier.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ullage::runtime {

class CardDevice final : public BudgetedDevice {
 public:
  // `host`: most bytes of locked host memory. `least`: smaller storages are PyTorch's. `driver_library` and errors: as
  // for cuda::Driver::open().
  static Result<std::unique_ptr<CardDevice>> open(int card, Bytes host, Bytes least, const std::string& driver_library);

  c10::Device device() const override { return {c10::kCUDA, static_cast<c10::DeviceIndex>(card_)}; }
  store::Pages& pages() override { return pages_; }
  plan::StandsOn stands_on() const override { return {plan::Kernels::Card, least_, least_}; }
  Bytes held() override;
  // The highest value that held() has returned so far, because a card keeps no peak of its own.
  Bytes held_peak() override { return Bytes{peak_.load()}; }
  Bytes warm_up() const override { return kWarmUp; }
  // The watch need not look often, because a consumer outside the pool asks before it grows (Session::grant). A look is
  // a call of the driver.
  std::chrono::milliseconds between_looks() const override { return std::chrono::milliseconds{50}; }
  bool is_the_process() const override { return false; }
  bool is_kept_by_forks() const override { return false; }
  bool heals_faults() const override { return false; }
  Result<store::Tier*> open_tier(const store::SpillPlace& place) override;
  store::Pager::Settings pager_settings() override;
  void install(Pool&) override {}                                             // card_seam.h
  void synchronize() override { static_cast<void>(driver_->synchronize()); }  // the next move meets the error
  CardWork* work() override { return &work_; }
  StorageMarks* marks() override { return tier_ != nullptr ? &marks_ : nullptr; }
  std::optional<store::DriverCalls> driver_calls() const override { return driver_->calls(); }
  void write_figures(store::LedgerSlot& slot) const override;
  // Stops all moves for good: the driver may end before the thread that moves bytes does.
  void ending(store::Pager& pager) override { pager.begin_capture(); }
  void ended(store::Pager&) override {}

  // Free and total bytes of the whole card, all processes included.
  Result<cuda::Driver::Memory> memory() { return driver_->memory(); }
  // The bytes of it that the control groups allow; nothing: they set no limit, or the card does not say its address.
  std::optional<Bytes> group_limit();

 private:
  // For kernels that are loaded at their first use. Not measured yet (docs/gpu.md).
  static constexpr Bytes kWarmUp = 64_MiB;

  CardDevice(int card, Bytes host, Bytes least, std::unique_ptr<cuda::Driver> driver);

  const int card_;
  const Bytes host_, least_;
  const std::unique_ptr<cuda::Driver> driver_;
  CardWork work_;
  const std::unique_ptr<cuda::CardUse> use_;
  cuda::CardPages pages_;
  StorageMarks marks_;
  std::unique_ptr<store::SpillFile> spill_;
  std::unique_ptr<cuda::HostTier> tier_;
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace ullage::runtime
