// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/budget.h"

#include <algorithm>
#include <utility>

namespace ullage::store {
namespace {

// If two threads race, a value may be lost. The next measurement makes up for it.
void raise(std::atomic<std::uint64_t>& peak, Bytes to) {
  if (to.count > peak.load()) peak.store(to.count);
}

}  // namespace

Budget::Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident, Tree* tree,
               bool lends)
    : stated_(stated.count),
      set_aside_((outside_start + warm_up).count),
      outside_start_(outside_start),
      expected_at_start_(outside_start + warm_up),
      resident_(std::move(resident)),
      tree_(tree),
      lends_(lends),
      outside_(outside_start.count),
      outside_for_good_(outside_start.count),
      least_((least(outside_start, warm_up) + kLeastAllowance).count) {}

Bytes Budget::others() const { return tree_ != nullptr ? tree_->others() : Bytes{}; }

Bytes Budget::needed_beside(Bytes outside, Bytes others) const {
  const Bytes expected = others > Bytes{} ? tree_->expected() : Bytes{};
  const Bytes standing = std::min(Bytes{charged_.load()}, saturating_sub(outside, outside_start_));
  const Bytes kept = lends_ ? charged_outside() : Bytes{set_aside_.load()} + standing;
  const Bytes chance = kLeastAllowance * (others > Bytes{} ? tree_->processes() : 0);
  return std::max(outside, kept) + kMargin + saturating_sub(others, expected) + chance;
}

Bytes Budget::note_for_good(Bytes outside) {
  const Bytes most = saturating_sub(outside, Bytes{files_there_.load()});
  const Bytes least = saturating_sub(most, Bytes{files_coming_.load()});
  const Bytes now = std::clamp(outside_for_good(), least, most);
  outside_for_good_.store(now.count);
  return now;
}

Bytes Budget::beside(Bytes pool_resident) {
  const Bytes outside_now = saturating_sub(resident_(), pool_resident);
  outside_.store(outside_now.count);
  raise(outside_peak_, outside_now);
  const Bytes for_good = note_for_good(outside_now);
  raise(outside_of_step_, saturating_sub(for_good, Bytes{charged_.load() + taken_from_reserve_.load()}));
  const Bytes others_now = others();
  raise(needed_lately_, needed_beside(for_good, others_now));
  const Bytes files{files_there_.load() + files_coming_.load()};
  return files + std::max(for_good, expected_outside()) + kMargin + others_now;
}

Bytes Budget::resident_limit(Bytes pool_resident) {
  const Bytes taken = beside(pool_resident);
  return unlimited() ? Bytes{UINT64_MAX / 2} : saturating_sub(stated(), taken);
}

Bytes Budget::missing(Bytes pool_resident) {
  const Bytes taken = beside(pool_resident);
  return unlimited() ? Bytes{} : saturating_sub(pool_resident + taken, stated());
}

// Lacking is what the process would hold with the request served, less what it holds now. If the request would not fit
// even if there were no other process, nothing is lacking: no other one should move anything for it.
bool Budget::recount(Bytes needed) {
  if (unlimited() || tree_ == nullptr) return false;
  const bool may_fit = needed + outside_for_good() + kMargin <= stated();
  const Bytes held = needed + std::max(outside(), expected_outside());
  return tree_->count(may_fit ? saturating_sub(held, resident_()) : Bytes{});
}

void Budget::charge(Bytes bytes) {
  if (charged_.fetch_add(bytes.count) == 0) outside_at_charge_.store(outside_for_good_.load());
  if (lends_) raise(needed_lately_, needed_beside({}, others()));
}

void Budget::discharge(Bytes bytes) {
  if (charged_.fetch_sub(bytes.count) == bytes.count) outside_at_charge_.store(0);
}

Bytes Budget::charged_outside() const {
  const std::uint64_t charged = charged_.load();
  return Bytes{charged > 0 ? outside_at_charge_.load() + charged : 0};
}

Bytes Budget::expected_with(std::uint64_t set_aside) const {
  return Bytes{std::max(std::max(set_aside, outside_at_charge_.load()) + charged_.load(), foreseen_.load())};
}

Bytes Budget::expected_outside() const { return expected_with(set_aside_.load()); }

Bytes Budget::expected_after_step() const {
  return expected_with(set_aside_after(std::max(outside_of_step_.load(), outside_of_last_step_.load())));
}

Bytes Budget::still_needed() const {
  const bool still = !lends_ || charged_.load() > 0;
  return still ? needed_beside(lends_ ? Bytes{} : outside_for_good(), others()) : Bytes{};
}

Bytes Budget::least_with(Bytes at_once) const {
  Bytes beside = std::max(Bytes{needed_lately_.load()}, still_needed());
  if (left_out_.load()) beside = std::min(beside, Bytes{beside_last_.load()});
  return std::max(Bytes{least_.load()}, at_once + beside + kLeastAllowance);
}

Bytes Budget::note_least(Bytes at_once) {
  const Bytes needed{needed_lately_.exchange(still_needed().count)};
  if (!left_out_.load()) beside_last_.store(needed.count);
  raise(least_, at_once + std::min(needed, Bytes{beside_last_.load()}) + kLeastAllowance);
  return Bytes{least_.load()};
}

void Budget::leave_out_of_least(bool begins) {
  left_out_.store(begins);
  if (!begins) needed_lately_.store(0);
}

std::uint64_t Budget::set_aside_after(std::uint64_t most) const {
  const std::uint64_t before = set_aside_.load();
  if (steps_.load() < kFirstSteps || most == 0) return before;  // zero: nobody asked for the limit in this step
  return follows_steps_ ? std::max(most, before) : most;
}

void Budget::end_step() {
  const std::uint64_t most = outside_of_step_.exchange(0);
  if (most > 0) outside_of_last_step_.store(most);
  set_aside_.store(set_aside_after(most));
  if (steps_++ >= kFirstSteps && most > 0) follows_steps_ = true;
}

bool Budget::lend() {
  const Bytes before = expected_outside();
  if (!lends_ || before <= std::max(outside_for_good(), charged_outside())) return false;
  set_aside_.store(0);
  foreseen_.store(0);
  return true;
}

}  // namespace ullage::store
