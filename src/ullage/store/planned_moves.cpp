// SPDX-License-Identifier: Apache-2.0
// Carries out what a plan orders: drops, recomputes, spills and restores storages.
#include "ullage/store/planned_moves.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "ullage/store/pager_core.h"

namespace ullage::store {
namespace {

Shortage cannot_recompute(Bytes size, std::string why) {
  Shortage failed;
  failed.refusal.requested = size;
  failed.spill_failure = std::move(why);
  return failed;
}

}  // namespace

// Waits until nobody is reading in the storage that begins at `at`, and returns it; null if there is none.
Pageable* PagerCore::storage_at_rest(Lock& lock, Address at) {
  for (;;) {
    const auto found = storages_.find(at);
    if (found == storages_.end()) return nullptr;
    if (found->second.where != Where::Returning) return &found->second;
    const Waiting waiting(*this);
    changed_.wait(lock);
  }
}

// Gives up the storage's slot and staged pages, and makes a copy that is being written worthless.
void PagerCore::forget_copies(Pageable& storage) {
  if (storage.slot) spill_->give(*storage.slot);
  storage.slot.reset();
  if (storage.staged) {
    store_.unstage(*storage.staged);
    --staged_;
  }
  storage.staged.reset();
  storage.changed = true;
  storage.unchanged = false;
}

bool PagerCore::drop(Address at) {
  Lock lock(lock_);
  await_written(lock, at);
  Pageable* storage = storage_at_rest(lock, at);
  if (in_child_ || captures_ > 0 || storage == nullptr) return false;
  if (storage->where == Where::Dropped || storage->pins > 0) return false;
  if (storage->where == Where::Resident) leave_pages(at, *storage);
  if (storage->where == Where::Spilled) counts_.spilled_now -= storage->span;
  forget_copies(*storage);
  storage->where = Where::Dropped;
  tell(at, Settings::Moved::Away);
  counts_.dropped += storage->span;
  counts_.dropped_now += storage->span;
  return true;
}

bool PagerCore::spill(Address at) {
  Lock lock(lock_);
  const Pageable* storage = storage_at_rest(lock, at);
  const StorageId id = storage != nullptr ? storage->id : StorageId{};
  const Waiting waiting(*this);
  for (;;) {
    Pageable* now = find(at, id);
    if (now == nullptr || now->where != Where::Resident || now->pins > 0 || captures_ > 0) return false;
    if (now->clean()) {
      take_pages(at, *now);
      return true;
    }
    if (now->writing) {
      changed_.wait(lock);
    } else if (in_child_ || spill_ == nullptr || !write_out(lock, at, id, For::New)) {
      return false;
    }
  }
}

void PagerCore::write_ahead(Address at) {
  const Lock lock(lock_);
  const auto found = storages_.find(at);
  if (in_child_ || spill_ == nullptr || found == storages_.end()) return;
  if (found->second.where != Where::Resident || found->second.read_only()) return;
  orders_.push_back({at, found->second.id, /*read=*/false});
  changed_.notify_all();
}

void PagerCore::read_ahead(Address at) {
  const Lock lock(lock_);
  const auto found = storages_.find(at);
  if (found == storages_.end() || found->second.where != Where::Spilled || found->second.staged) return;
  const std::variant<Address, Refusal> staged = store_.stage(at);
  if (std::holds_alternative<Refusal>(staged)) return;
  found->second.staged = std::get<Address>(staged);
  ++staged_;
  if (in_child_) return;  // a forked child has no background thread
  orders_.push_back({at, found->second.id, /*read=*/true});
  changed_.notify_all();
}

bool PagerCore::adopt(Address at, Address from) {
  Lock lock(lock_);
  await_written(lock, from);
  // It may have been spilled since it was made, because something else had no room.
  if (const Pageable* giver = storage_at_rest(lock, from); giver != nullptr && giver->where == Where::Spilled) {
    const Waiting waiting(*this);
    if (bring_back(lock, from, giver->id, For::Input)) return false;
  }
  const auto taker = storages_.find(at);
  const auto giver = storages_.find(from);
  if (taker == storages_.end() || giver == storages_.end() || giver->second.size != taker->second.size) return false;
  Pageable& to = taker->second;
  const bool away = to.where == Where::Dropped || to.where == Where::Spilled;
  if (!away || giver->second.where != Where::Resident) return false;
  (to.where == Where::Dropped ? counts_.dropped_now : counts_.spilled_now) -= to.span;
  forget_copies(to);
  forget_copies(giver->second);
  ULLAGE_CHECK(store_.hand_over(from, at), "the kernel moves pages no more (see vm.max_map_count)");
  to.shared = std::exchange(giver->second.shared, false);
  to.where = Where::Resident;
  tell(at, Settings::Moved::Back);
  to.healed = 0;
  ++to.adopted;
  giver->second.where = Where::Dropped;
  tell(from, Settings::Moved::Away);
  counts_.dropped_now += to.span;
  changed_.notify_all();
  return true;
}

void PagerCore::set_recomputer(Recomputer* recomputer) {
  const Lock lock(lock_);
  recomputer_ = recomputer;
}

void PagerCore::follow_plan(bool on) {
  const Lock lock(lock_);
  follows_plan_ = on;
}

Bytes PagerCore::room() {
  store_.room();  // asks for the limit
  const StoreCounts counts = store_.counts();
  return saturating_sub(counts.limit, counts.wasted_peak);
}

// Recomputes a dropped storage. If this returns nothing, the storage got its bytes, here or elsewhere, or was freed.
std::optional<Shortage> PagerCore::recompute(Lock& lock, Address at, StorageId id, bool at_fault) {
  Pageable* storage = find(at, id);
  const Bytes size = storage->size;
  if (recomputer_ == nullptr || in_child_)
    return cannot_recompute(size, "its bytes were dropped, and nothing can recompute them");
  if (storage->recomputing())
    return cannot_recompute(size, "its bytes were dropped, and recomputing them needs these very bytes");
  storage->recomputing_on = std::this_thread::get_id();
  const std::uint64_t adopted = storage->adopted;
  ++recomputes_;
  Recomputer* const recomputer = recomputer_;
  std::string why = "its bytes were dropped, and could not be recomputed";
  bool made = false;
  lock.unlock();
  try {
    made = recomputer->recompute(at, at_fault);
  } catch (const std::exception& error) {
    why += std::string(": ") + error.what();
  } catch (...) {
    why += ": unknown exception";
  }
  lock.lock();
  --recomputes_;
  changed_.notify_all();
  storage = find(at, id);
  if (storage == nullptr) return std::nullopt;
  storage->recomputing_on = {};
  const bool was_here = storage->adopted != adopted;  // a plan may have dropped it again since
  if (made && was_here) ++counts_.recomputed;
  if (was_here || storage->where != Where::Dropped) return std::nullopt;
  return cannot_recompute(size, why);
}

// Recomputes every dropped storage that can be recomputed, because a forked child could not do it.
void PagerCore::recompute_all(Lock& lock) {
  std::vector<Held> all;
  for (const auto& [at, storage] : storages_) {
    if (storage.where == Where::Dropped) all.push_back({at, storage.id, false});
  }
  for (const Held& one : all) bring_back(lock, one.at, one.id, For::Input);
}

}  // namespace ullage::store
