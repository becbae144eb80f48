// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pool.h"

#include "ullage/store/store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace ullage::sim {
namespace {

constexpr Bytes kAddressSpace{1ull << 46};
constexpr Bytes kMostEver{1ull << 62};

// A store, and beside it a count of bytes that the store cannot place. The count is needed because a size in a file may
// be larger than all addresses. It stays within kMostEver, so that sums do not overflow.
class Pool final {
 public:
  explicit Pool(std::size_t storages)
      : limit_(kMostEver), store_(store::Store::create(pages_, limit_, options()).value()), places_(storages) {}

  void allocate(StorageId id, Bytes bytes) {
    if (bytes == Bytes{} || places_[id.value].lives) return;
    Place& place = places_[id.value];
    place.lives = true;
    if (bytes < kAddressSpace) {
      const auto outcome = store_->allocate(bytes);
      if (const Address* at = std::get_if<Address>(&outcome)) place.at = *at;
    }
    if (!place.at) {
      place.beyond = std::min(bytes, kMostEver - beyond_);
      beyond_ += place.beyond;
    }
    note();
  }
  void free(StorageId id) {
    Place& place = places_[id.value];
    if (!place.lives) return;
    if (place.at) store_->free(*place.at);
    beyond_ -= place.beyond;
    place = {};
  }
  PoolPeaks peaks() const { return peaks_; }

 private:
  struct Place {
    bool lives = false;
    std::optional<Address> at;
    Bytes beyond;
  };
  static store::Store::Options options() {
    store::Store::Options options;
    options.address_space = kAddressSpace;
    return options;
  }
  void note() {
    const store::StoreCounts counts = store_->counts();
    peaks_.live = std::max(peaks_.live, counts.live + beyond_);
    peaks_.resident = std::max(peaks_.resident, counts.resident + beyond_);
  }

  store::NoPages pages_;
  store::FixedLimit limit_;
  std::unique_ptr<store::Store> store_;
  std::vector<Place> places_;
  Bytes beyond_;
  PoolPeaks peaks_;
};

}  // namespace

PoolPeaks run_pool(const trace::Trace& trace) {
  Pool pool(trace.storages.size());
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    if (trace.storages[i].from_before) pool.allocate(StorageId{i}, trace.storages[i].bytes);
  }
  for (const trace::Event& event : trace.events) {
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      pool.allocate(born->storage, trace.storages[born->storage.value].bytes);
    } else if (const auto* died = std::get_if<trace::event::Free>(&event.what)) {
      pool.free(died->storage);
    }
  }
  return pool.peaks();
}

}  // namespace ullage::sim
