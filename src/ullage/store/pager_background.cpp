// SPDX-License-Identifier: Apache-2.0
// The pager's background thread. It makes the copies that a plan orders. Without a plan it reads ahead the storages
// that are due next. It writes ahead those that will be evicted next, so that an eviction only has to take the pages.
#include "ullage/store/pager_core.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace ullage::store {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{5};
constexpr std::chrono::milliseconds kWhileIdle{50};
// Storages needed within this time are read ahead. To read 128 MiB takes about 0.05 s.
constexpr Seconds kDue{0.5};
constexpr std::uint64_t kLeastAhead = 32;       // ops; storages needed sooner are not written ahead
constexpr std::uint64_t kStillEvicting = 8192;  // ops since the last eviction; after more, nothing is written ahead
// Bytes are ready if they can be had without a write: free room, and clean storages among those that are needed last.
// Storages are written ahead until the ready bytes are the pool's limit divided by kReadyShare, but at most kMostReady.
constexpr std::uint64_t kReadyShare = 3;
constexpr Bytes kMostReady = 512_MiB;
// So many bytes are written after one look at all storages. A program may have thousands of small ones; to look at them
// takes as long as to write one.
constexpr Bytes kWrittenAtOnce = 1_MiB;

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

void PagerCore::run_in_background() {
  Lock lock(lock_);
  for (;;) {
    if (captures_ > 0) {
      changed_.wait_for(lock, kWhileIdle);
      continue;
    }
    const auto began = std::chrono::steady_clock::now();
    if (carry_out_order(lock)) {
      counts_.background.count += seconds_since(began);
      continue;
    }
    if (!under_pressure() || spill_ == nullptr || starving_ > 0 || follows_plan_) {
      changed_.wait_for(lock, starving_ > 0 ? kBetweenLooks : kWhileIdle);
      continue;
    }
    if (bring_back_due(lock) || write_farthest(lock)) {
      counts_.background.count += seconds_since(began);
    } else {
      changed_.wait_for(lock, kBetweenLooks);
    }
  }
}

// Makes the next copy that a plan ordered and that is still of use. False: there is none.
bool PagerCore::carry_out_order(Lock& lock) {
  while (!orders_.empty()) {
    const Order order = orders_.front();
    orders_.pop_front();
    const Pageable* storage = find(order.at, order.id);
    if (storage == nullptr) continue;
    const Bytes span = storage->span;
    if (order.read && storage->staged) {
      // If the read fails, whoever needs the storage will get the error.
      if (!read_in(lock, order.at, order.id, *storage->staged)) counts_.restored_ahead += span;
      return true;
    }
    if (!order.read && storage->where == Where::Resident && !storage->read_only()) {
      const Bytes before = counts_.written;
      if (write_out(lock, order.at, order.id, For::New) && counts_.written > before) counts_.written_ahead += span;
      return true;
    }
  }
  return false;
}

// Reads ahead the spilled storage that is needed first, if that is within kDue. If there is no room, evicts clean
// storages that are needed later. Returns false if nothing was read.
bool PagerCore::bring_back_due(Lock& lock) {
  const OpId now = history_.now();
  auto due = storages_.end();
  OpId due_at{};
  for (auto it = storages_.begin(); it != storages_.end(); ++it) {
    if (it->second.where != Where::Spilled || it->second.staged) continue;
    const auto next = history_.next(it->second.last_use);
    if (!next || next->dies || next->at < now || (due != storages_.end() && next->at >= due_at)) continue;
    due = it;
    due_at = next->at;
  }
  if (due == storages_.end()) return false;
  const auto left = history_.time_until(due_at.value - now.value);
  if (!left || *left > kDue) return false;
  const Address at = due->first;
  const StorageId id = due->second.id;
  const Bytes span = due->second.span;
  if (!make_clean_room(due->second)) return false;
  const std::variant<Address, Refusal> staged = store_.stage(at);
  if (std::holds_alternative<Refusal>(staged)) return false;
  if (read_in(lock, at, id, std::get<Address>(staged))) return false;  // whoever needs it will get the error
  counts_.restored_ahead += span;
  return true;
}

// Makes room for `wanted` by evicting clean storages that are needed later. Spares those that a fault has just brought
// back: the code that faulted has not used them yet. False: there are not enough of them.
bool PagerCore::make_clean_room(const Pageable& wanted) {
  const std::uint64_t own = distance(wanted, history_);
  while (store_.room() < wanted.span) {
    if (let_files_go(saturating_sub(wanted.span, store_.room())) > Bytes{}) continue;
    const auto victim = farthest(For::New, /*clean_only=*/true);
    if (victim == storages_.end() || victim->second.writing || just_healed(victim->second)) return false;
    if (distance(victim->second, history_) <= own) return false;
    evicted_at_ = history_.now();
    take_pages(victim->first, victim->second);
  }
  return true;
}

// Writes out storages that would be evicted next, up to kWrittenAtOnce. False: nothing was written.
bool PagerCore::write_farthest(Lock& lock) {
  if (in_child_ || !spill_failure_.empty()) return false;
  // Writes ahead only if something was evicted not long ago, so that a program that fits does not pay for it.
  if (evicted_at_ == OpId{} || history_.now().value - evicted_at_.value > kStillEvicting) return false;
  const Bytes ready = std::min(store_.counts().limit / kReadyShare, kMostReady);
  Bytes have = store_.room() + files_to_let_go();
  if (have >= ready) return false;
  struct Candidate {
    std::uint64_t ops;
    Address at;
    StorageId id;
  };
  std::vector<Candidate> order;
  for (const auto& [at, storage] : storages_) {
    if (storage.where != Where::Resident || storage.pins > 0) continue;
    order.push_back({distance(storage, history_), at, storage.id});
  }
  std::ranges::sort(
      order, [](const Candidate& a, const Candidate& b) { return std::pair(a.ops, a.at) > std::pair(b.ops, b.at); });
  Bytes wrote;
  for (const auto& [ops, at, id] : order) {
    if (have >= ready || ops < kLeastAhead || wrote >= kWrittenAtOnce) break;
    // While another one was written, this one may have been freed, evicted or pinned.
    const Pageable* storage = find(at, id);
    if (storage == nullptr || storage->where != Where::Resident || storage->pins > 0) continue;
    const Bytes span = storage->span;
    have += span;
    if (storage->clean() || storage->writing) continue;
    const Bytes before = counts_.written;
    if (!write_out(lock, at, id, For::New)) break;
    if (counts_.written > before) counts_.written_ahead += span;
    wrote += span;
  }
  return wrote > Bytes{};
}

}  // namespace ullage::store
