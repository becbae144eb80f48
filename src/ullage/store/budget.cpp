// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/budget.h"

#include <algorithm>
#include <utility>

namespace ullage::store {
namespace {

// A lost race is made good at the next look.
void raise(std::atomic<std::uint64_t>& peak, Bytes to) {
  if (to.count > peak.load()) peak.store(to.count);
}

}  // namespace

Budget::Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident, Tree* tree)
    : stated_(stated.count),
      set_aside_((outside_start + warm_up).count),
      expected_at_start_(outside_start + warm_up),
      resident_(std::move(resident)),
      tree_(tree),
      outside_(outside_start.count),
      least_(least(outside_start, warm_up).count) {}

Bytes Budget::beside_the_pool(Bytes pool_resident) {
  const Bytes outside_now = saturating_sub(resident_(), pool_resident);
  outside_.store(outside_now.count);
  raise(outside_peak_, outside_now);
  raise(outside_of_step_, saturating_sub(outside_now, Bytes{charged_.load()}));
  const Bytes needed = std::max(outside_now, charged_outside());
  const Bytes margin = kMargin + (tree_ != nullptr ? tree_->others() : Bytes{});
  return std::max(needed, expected_outside()) + margin;
}

Bytes Budget::resident_limit(Bytes pool_resident) {
  const Bytes beside = beside_the_pool(pool_resident);
  // Here alone: the store asks under its lock. In short_by() pages that it is about to count would look like outside.
  const Bytes others = tree_ != nullptr ? tree_->others() : Bytes{};
  raise(needed_lately_, std::max(outside(), charged_outside()) + kMargin + others);
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

Bytes Budget::charged_outside() const {
  const std::uint64_t charged = charged_.load();
  return Bytes{charged > 0 ? outside_at_charge_.load() + charged : 0};
}

Bytes Budget::expected_outside() const {
  return Bytes{std::max(set_aside_.load(), outside_at_charge_.load()) + charged_.load()};
}

Bytes Budget::note_least(Bytes at_once) {
  const Bytes beside{needed_lately_.exchange(0)};
  if (!planning_.load()) raise(least_, at_once + beside + kLeastAllowance);
  return Bytes{least_.load()};
}

void Budget::end_step() {
  const std::uint64_t most = outside_of_step_.exchange(0), steps = ++steps_;
  if (steps <= kFirstSteps || most == 0) return;
  set_aside_.store(steps == kFirstSteps + 1 ? most : std::max(most, set_aside_.load()));
}

bool Budget::lend() {
  const Bytes before = expected_outside();
  if (before <= std::max(outside(), charged_outside())) return false;
  set_aside_.store(0);
  return true;
}

}  // namespace ullage::store
