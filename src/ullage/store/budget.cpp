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

void take_from(std::atomic<std::uint64_t>& figure, Bytes by) {
  std::uint64_t now = figure.load();
  while (!figure.compare_exchange_weak(now, saturating_sub(Bytes{now}, by).count)) {
  }
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
      beside_files_(outside_start.count) {
  const Bytes first = least(outside_start, warm_up) + kLeastAllowance;
  least_.raise_to({first, first});
}

Bytes Budget::needed_alone(Bytes outside) const {
  const Bytes standing = std::min(Bytes{charged_.load()}, saturating_sub(outside, outside_start_));
  const Bytes kept = lends_ ? charged_outside() : Bytes{set_aside_.load()} + standing;
  return std::max(outside, kept) + kMargin;
}

Budget::Needed Budget::needed(Bytes outside, const Others& others) const {
  const Bytes alone = needed_alone(outside);
  if (others.held == Bytes{}) return {alone, alone};
  const Bytes there = saturating_sub(others.held, others.movable + others.expected + others.guessed);
  const Bytes all = alone + there + kLeastAllowance * tree_->processes();
  return {all, saturating_sub(all, std::min(tree_->inherited(), there))};
}

Budget::Needed Budget::with(const Needed& beside, Bytes at_once) {
  return {beside.all + at_once + kLeastAllowance, beside.uninherited + at_once + kLeastAllowance};
}

Budget::Needed Budget::lower(const Needed& a, const Needed& b) {
  return {std::min(a.all, b.all), std::min(a.uninherited, b.uninherited)};
}

Bytes Budget::counted(const Needed& least) const {
  return least.uninherited + kMargin < Bytes{evicts_below_.load()} ? least.uninherited : least.all;
}

void Budget::note_fork(Bytes live) {
  const std::uint64_t below = (live + outside_for_good() + kMargin).count;
  for (std::uint64_t now = evicts_below_.load(); below < now && !evicts_below_.compare_exchange_weak(now, below);) {
  }
}

void Budget::Highest::raise_to(const Needed& needed) {
  raise(all, needed.all);
  raise(uninherited, needed.uninherited);
}

Budget::Needed Budget::Highest::exchange(const Needed& needed) {
  return {Bytes{all.exchange(needed.all.count)}, Bytes{uninherited.exchange(needed.uninherited.count)}};
}

// A measurement by another thread in between makes beside_files_ too low, never too high. The next one heals that.
void Budget::in_files(Bytes there, Bytes coming, Bytes own, Bytes found) {
  files_own_.store(own.count);
  files_there_.store(there.count);
  files_coming_.store(coming.count);
  if (found == Bytes{}) return;
  for (auto* figure : {&beside_files_, &outside_of_step_, &outside_of_last_step_, &outside_at_charge_})
    take_from(*figure, found);
  if (follows_steps_) take_from(set_aside_, found);
}

Bytes Budget::beside(Bytes pool_resident) {
  const Bytes there{files_there_.load()}, coming{files_coming_.load()}, own{files_own_.load()};  // before the process
  const Bytes outside_now = saturating_sub(resident_(), pool_resident);
  outside_.store(outside_now.count);
  raise(outside_peak_, outside_now);
  // While pages are being read in, it is not known how many of them are there already. Then the last value stands,
  // unless it is impossible.
  const Bytes most = saturating_sub(outside_now, there + own);
  const Bytes beside_files = std::clamp(outside_beside_files(), saturating_sub(most, coming), most);
  beside_files_.store(beside_files.count);
  raise(outside_of_step_, saturating_sub(beside_files, Bytes{charged_.load() + taken_from_reserve_.load()}));
  const Bytes for_good = beside_files + own;
  const Others others_now = others();
  needed_lately_.raise_to(needed(for_good, others_now));
  return there + coming + std::max(for_good, expected_outside()) + kMargin + others_now.held;
}

Bytes Budget::resident_limit(Bytes pool_resident) {
  const Bytes taken = beside(pool_resident);
  return unlimited() ? Bytes{UINT64_MAX / 2} : saturating_sub(stated(), taken);
}

Bytes Budget::missing(Bytes pool_resident) {
  const Bytes taken = beside(pool_resident);
  return unlimited() ? Bytes{} : saturating_sub(pool_resident + taken, stated());
}

// Lacking is what the process would hold with the request served, less what it holds now. Foreseen bytes are not part
// of it: the thread that announced them may have touched them, and asks for something else now. If the request would
// not fit even if there were no other process, nothing is lacking: no other one should move anything for it.
bool Budget::recount(Bytes needed) {
  if (unlimited() || tree_ == nullptr) return false;
  const bool may_fit = needed + outside_for_good() + kMargin <= stated();
  const Bytes held = needed + std::max(outside(), reserved(set_aside_.load()));
  return tree_->count(may_fit ? saturating_sub(held, resident_()) : Bytes{});
}

void Budget::charge(Bytes bytes) {
  if (charged_.fetch_add(bytes.count) == 0) outside_at_charge_.store(beside_files_.load());
  if (lends_) needed_lately_.raise_to(needed({}, others()));
}

void Budget::discharge(Bytes bytes) {
  if (charged_.fetch_sub(bytes.count) == bytes.count) outside_at_charge_.store(0);
}

Bytes Budget::charged_outside() const {
  const std::uint64_t charged = charged_.load();
  return Bytes{charged > 0 ? outside_at_charge_.load() + charged + files_own_.load() : 0};
}

Bytes Budget::reserved(std::uint64_t set_aside) const {
  return Bytes{std::max(set_aside, outside_at_charge_.load()) + charged_.load() + files_own_.load()};
}

Bytes Budget::expected_with(std::uint64_t set_aside) const {
  return std::max(reserved(set_aside), Bytes{foreseen_.load() + files_own_.load()});
}

Bytes Budget::expected_outside() const { return expected_with(set_aside_.load()); }

Bytes Budget::expected_after_step() const {
  return expected_with(set_aside_after(std::max(outside_of_step_.load(), outside_of_last_step_.load())));
}

Budget::Needed Budget::still_needed() const {
  const bool still = !lends_ || charged_.load() > 0;
  return still ? needed(lends_ ? Bytes{} : outside_for_good(), others()) : Needed{};
}

Bytes Budget::least_with(Bytes at_once) const {
  Highest sum;
  sum.raise_to(needed_lately_.now());
  sum.raise_to(still_needed());
  const Needed beside = left_out_.load() ? lower(sum.now(), beside_last_.now()) : sum.now();
  Highest all;
  all.raise_to(least_.now());
  all.raise_to(with(beside, at_once));
  return counted(all.now());
}

Bytes Budget::note_least(Bytes at_once) {
  const Needed needed = needed_lately_.exchange(still_needed());
  if (!left_out_.load()) beside_last_.exchange(needed);
  least_.raise_to(with(lower(needed, beside_last_.now()), at_once));
  return counted(least_.now());
}

void Budget::leave_out_of_least(bool begins) {
  left_out_.store(begins);
  if (!begins) needed_lately_.exchange({});
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
