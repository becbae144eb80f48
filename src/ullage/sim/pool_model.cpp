// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pool_model.h"

#include <algorithm>
#include <variant>

namespace ullage::sim {
namespace {

constexpr Bytes kModelledSpace{1ull << 50};
constexpr Bytes kNoLimit{1ull << 62};

store::Store::Options options() {
  store::Store::Options options;
  options.address_space = kModelledSpace;
  return options;
}

Address placed(const std::variant<Address, store::Refusal>& outcome) {
  const Address* at = std::get_if<Address>(&outcome);
  ULLAGE_CHECK(at != nullptr, "more bytes at once than a pool has addresses for");
  return *at;
}

}  // namespace

PoolModel::PoolModel() : limit_(kNoLimit), store_(store::Store::create(pages_, limit_, options()).value()) {}

Address PoolModel::allocate(Bytes bytes) {
  const Address at = placed(store_->allocate(bytes));
  note();
  return at;
}

void PoolModel::free(Address at) { store_->free(at); }

void PoolModel::give_pages_up(Address at) { store_->vacate(at); }

void PoolModel::take_pages(Address at) {
  const Address staged = placed(store_->stage(at));
  ULLAGE_CHECK(store_->settle(at, staged, store::Access::ReadWrite), "the model's pages were not moved");
  note();
}

void PoolModel::hand_over(Address from, Address to) {
  ULLAGE_CHECK(store_->hand_over(from, to), "the model's pages were not moved");
}

Bytes PoolModel::resident_now() const {
  const store::StoreCounts counts = store_->counts();
  return counts.resident - counts.idle;
}

void PoolModel::note() { peak_ = std::max(peak_, resident_now()); }

}  // namespace ullage::sim
