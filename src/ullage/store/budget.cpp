// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/budget.h"

#include <algorithm>
#include <utility>

namespace ullage::store {

Budget::Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident, Tree* tree)
    : stated_(stated.count),
      expected_outside_((outside_start + warm_up).count),
      resident_(std::move(resident)),
      tree_(tree),
      outside_(outside_start.count) {}

Bytes Budget::beside_the_pool(Bytes pool_resident) {
  const Bytes outside_now = saturating_sub(resident_(), pool_resident);
  outside_.store(outside_now.count);
  // A lost race is made good at the next look.
  if (outside_now.count > outside_peak_.load()) outside_peak_.store(outside_now.count);
  const Bytes beside =
      std::max(outside_now, expected_outside()) + kMargin + (tree_ != nullptr ? tree_->others() : Bytes{});
  if (beside.count > beside_peak_.load()) beside_peak_.store(beside.count);
  return beside;
}

Bytes Budget::resident_limit(Bytes pool_resident) {
  const Bytes beside = beside_the_pool(pool_resident);
  return unlimited() ? Bytes{UINT64_MAX / 2} : saturating_sub(stated(), beside);
}

Bytes Budget::short_by(Bytes pool_resident) {
  return unlimited() ? Bytes{} : saturating_sub(pool_resident + beside_the_pool(pool_resident), stated());
}

void Budget::charge(Bytes bytes) {
  if (charged_.fetch_add(bytes.count) == 0) outside_at_charge_.store(outside_.load());
}

void Budget::discharge(Bytes bytes) {
  if (charged_.fetch_sub(bytes.count) == bytes.count) outside_at_charge_.store(0);
}

Bytes Budget::expected_outside() const {
  return Bytes{std::max(expected_outside_.load(), outside_at_charge_.load()) + charged_.load()};
}

}  // namespace ullage::store
