// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/card/card_device.h"

#include "ullage/cuda/group_limit.h"
#include "ullage/store/ledger.h"

#include <utility>

namespace ullage::runtime {

Result<std::unique_ptr<CardDevice>> CardDevice::open(int card, Bytes host, Bytes least,
                                                     const std::string& driver_library) {
  ULLAGE_TRY_VALUE(std::unique_ptr<cuda::Driver> driver, cuda::Driver::open(card, driver_library));
  return std::unique_ptr<CardDevice>(new CardDevice(card, host, least, std::move(driver)));
}

CardDevice::CardDevice(int card, Bytes host, Bytes least, std::unique_ptr<cuda::Driver> driver)
    : card_(card),
      host_(host),
      least_(least),
      driver_(std::move(driver)),
      work_(CardDevice::device()),
      use_(cuda::CardUse::of(*driver_)),
      pages_(*driver_) {
  driver_->set_work(&work_);
}

std::optional<Bytes> CardDevice::group_limit() {
  const Result<std::string> bus_id = driver_->bus_id();
  return bus_id ? cuda::group_limit(*bus_id) : std::nullopt;
}

Bytes CardDevice::held() {
  const Bytes now = use_->now();
  store::raise_to(peak_, now.count);
  return now;
}

Result<store::Tier*> CardDevice::open_tier(const store::SpillPlace& place) {
  if (place.most > Bytes{}) {
    store::SpillFile::Options options;
    options.bridge = driver_.get();
    ULLAGE_TRY_VALUE(spill_, store::SpillFile::open(place, options));
  }
  if (host_ == Bytes{} && spill_ == nullptr) return static_cast<store::Tier*>(nullptr);
  ULLAGE_TRY_VALUE(tier_, cuda::HostTier::open(*driver_, host_, spill_.get()));
  return static_cast<store::Tier*>(tier_.get());
}

void CardDevice::write_figures(store::LedgerSlot& slot) const {
  const cuda::CardUse::Knowledge known = use_->knowledge();
  slot.counted_by.store(known.way == cuda::CardUse::Way::Unknown ? 1 : 2);
  slot.count_note.set(known.reason);
  const store::DriverCalls calls = driver_->calls();
  for (std::size_t i = 0; i < calls.size(); ++i) slot.driver_calls[i].store(calls[i]);
  if (tier_ == nullptr) return;
  const cuda::HostTier::Counts host = tier_->counts();
  slot.locked.store(host.locked.count);
  slot.lock_failure.set(host.lock_failure);
}

store::Pager::Settings CardDevice::pager_settings() {
  store::Pager::Settings settings;
  settings.heal_faults = settings.notices_writes = false;
  settings.libraries_take_blocks = true;
  settings.used = [this](Address at, Bytes size) { work_.used(at, size); };
  if (tier_ != nullptr)
    settings.moved = [this](Address at, store::Pager::Settings::Moved what) { marks_.moved(at, what); };
  return settings;
}

}  // namespace ullage::runtime
