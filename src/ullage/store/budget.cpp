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

Bytes Budget::margin() const { return kMargin + (tree_ != nullptr ? tree_->others() : Bytes{}); }

Bytes Budget::resident_limit(Bytes pool_resident) {
  const Bytes outside_now = saturating_sub(resident_(), pool_resident);
  outside_.store(outside_now.count);
  raise(outside_peak_, outside_now);
  raise(outside_of_step_, saturating_sub(outside_now, Bytes{charged_.load()}));
  raise(needed_lately_, std::max(outside_now, charged_outside()) + margin());
  if (unlimited()) return Bytes{UINT64_MAX / 2};
  return saturating_sub(stated(), std::max({outside_now, charged_outside(), expected_outside()}) + margin());
}

void Budget::charge(Bytes bytes) {
  if (charged_.fetch_add(bytes.count) == 0) outside_at_charge_.store(outside_.load());
  raise(needed_lately_, charged_outside() + margin());
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
  // What is charged now is needed in the time to come too, even if nobody asks for the limit in it.
  const Bytes still_needed = charged_.load() > 0 ? charged_outside() + margin() : Bytes{};
  const Bytes needed{needed_lately_.exchange(still_needed.count)};
  if (!planning_.load()) beside_last_.store(needed.count);
  raise(least_, at_once + std::min(needed, Bytes{beside_last_.load()}) + kLeastAllowance);
  return Bytes{least_.load()};
}

void Budget::planning(bool begins) {
  planning_.store(begins);
  if (!begins) needed_lately_.store(0);
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
