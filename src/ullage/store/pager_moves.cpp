// SPDX-License-Identifier: Apache-2.0
// The pager's moves: what is evicted, how bytes go out and come back.
#include "ullage/store/pager_core.h"

#include <algorithm>
#include <utility>

namespace ullage::store {
namespace {

// The storages that faults brought back last are evicted last: one instruction may read one and write another.
constexpr std::uint64_t kKeptAfterFault = 4;
constexpr int kWritesForAFault = 3;
constexpr int kMostRecounts = 20;  // some 10 ms each
// Who is evicted first, by rank, the highest first.
constexpr int kJustHealed = 0;
constexpr int kPinned = 1;
constexpr int kFree = 2;

}  // namespace

// Evicts one storage to the benefit of a request that the store refused. None: there is nothing left to evict.
PagerCore::Evicted PagerCore::make_room(Lock& lock, const Refusal& refusal, For whom) {
  if (refusal.reason == Refusal::Reason::AddressSpace || captures_ > 0) return Evicted::None;
  if (unstage_one()) return Evicted::One;
  bool clean_only = spill_ == nullptr || in_child_;
  // A thread that stands at a fault cannot be told of an error, so a failed write is tried again before it ends.
  for (int writes_left = whom == For::Fault ? kWritesForAFault : 1;;) {
    const auto victim = farthest(whom, clean_only);
    if (victim != storages_.end()) {
      const Evicted evicted = evict(lock, victim->first, victim->second.id, whom);
      if (evicted == Evicted::One) ++counts_.evicted_on_demand;
      if (evicted != Evicted::None) return evicted;
      if (clean_only) return Evicted::None;
      clean_only = --writes_left == 0;  // it could not be written; others need not be
      continue;
    }
    if (moves_ == 0) return Evicted::None;
    ++starving_;  // what ends now is ours: the background must not take it away for the next one it brings back
    changed_.wait(lock);
    --starving_;
    return Evicted::Waited;
  }
}

// As make_room(); where there is nothing to evict, the limit is counted anew before the request is refused, and
// again for some moments, as other processes may be about to give way. At last whoever can is asked to.
std::optional<Shortage> PagerCore::make_room_or_recount(Lock& lock, const Refusal& refusal, For whom, Tried& tried) {
  if (make_room(lock, refusal, whom) != Evicted::None) return std::nullopt;
  const bool over = refusal.reason == Refusal::Reason::OverLimit;
  if (!over) return shortage(refusal);
  if (tried.recounts++ < kMostRecounts && recount_limit(lock)) return std::nullopt;
  // Once more: another thread's request may just have been given what there was to give.
  if (somebody_gives_way(lock) || !std::exchange(tried.once_more, true)) return std::nullopt;
  return shortage(refusal);
}

// Waits for the launcher, up to some seconds; other threads use the pager meanwhile.
bool PagerCore::recount_limit(Lock& lock) {
  lock.unlock();
  const bool counted = store_.recount_limit();
  lock.lock();
  return counted;
}

bool PagerCore::somebody_gives_way(Lock& lock) {
  if (!settings_.last_resort || in_child_) return false;
  lock.unlock();
  const bool gave_way = settings_.last_resort();
  lock.lock();
  return gave_way;
}

// The resident storage to give up first: of the highest rank there is, the one needed last.
Pageables::iterator PagerCore::farthest(For whom, bool clean_only) {
  auto best = storages_.end();
  std::pair<int, std::uint64_t> best_key;  // rank, distance
  for (auto it = storages_.begin(); it != storages_.end(); ++it) {
    const Pageable& storage = it->second;
    if (storage.where != Where::Resident || (clean_only && !storage.clean())) continue;
    const bool pinned = storage.pins > 0;
    if (pinned && whom != For::Fault) continue;
    const bool just_healed = storage.healed_lately(counts_.faults, kKeptAfterFault);
    const int rank = pinned ? kPinned : kFree;
    const std::pair<int, std::uint64_t> key{just_healed ? kJustHealed : rank, distance(storage, history_)};
    if (best == storages_.end() || key > best_key) {
      best = it;
      best_key = key;
    }
  }
  // Says nothing: the watch, which looks all the time; nobody there, as all is on its way for another thread.
  if (whom == For::Fault && best != storages_.end()) fruitless_ = best_key.first == kJustHealed ? fruitless_ + 1 : 0;
  return best;
}

// One: its pages are the store's again. Waited: something changed meanwhile, look again. None: it cannot be written.
PagerCore::Evicted PagerCore::evict(Lock& lock, Address at, StorageId id, For whom) {
  Pageable* storage = find(at, id);
  if (storage->writing) {
    changed_.wait(lock);
    return Evicted::Waited;
  }
  if (!storage->slot) {
    if (in_child_ || spill_ == nullptr) return Evicted::None;
    if (const Status written = write_out(lock, at, id, whom); !written) return Evicted::None;
    storage = find(at, id);
    const bool still =
        storage != nullptr && storage->clean() && !storage->writing && (storage->pins == 0 || whom == For::Fault);
    if (!still) return Evicted::Waited;
  }
  evicted_at_ = history_.now();
  take_pages(at, *storage);
  return Evicted::One;
}

void PagerCore::take_pages(Address at, Pageable& storage) {
  diverge(storage);
  store_.vacate(at);
  storage.where = Where::Spilled;
  tell(at, Settings::Moved::Away);
  if (storage.unchanged) counts_.rewrites_avoided += storage.span;
  counts_.spilled += storage.span;
  counts_.spilled_now += storage.span;
  counts_.spilled_peak = std::max(counts_.spilled_peak, counts_.spilled_now);
}

// Gives up pages that something was to be read into ahead. False: there are none.
bool PagerCore::unstage_one() {
  if (staged_ == 0) return false;
  const auto found =
      std::find_if(storages_.begin(), storages_.end(), [](const auto& one) { return one.second.staged.has_value(); });
  store_.unstage(*found->second.staged);
  found->second.staged.reset();
  --staged_;
  return true;
}

// Copies a resident storage into the file; unless someone writes to it meanwhile, it is clean then.
Status PagerCore::write_out(Lock& lock, Address at, StorageId id, For whom) {
  Pageable* storage = find(at, id);
  const Result<SpillSlot> slot = take_slot(storage->span, whom);
  if (!slot) {
    spill_failure_ = slot.error().text();
    return slot.error();
  }
  // From here on the first write is a fault, and the copy is given up then. Unnoticed writes would be lost.
  if (!store_.protect(at, Access::Read)) {
    spill_->give(*slot);
    spill_failure_ = "the kernel protects no more pages (see vm.max_map_count)";
    return Error{Error::Kind::System, spill_failure_, ""};
  }
  storage->writing = true;
  storage->changed = false;
  const auto sharing = storage->shared ? Tier::Sharing::WithAFork : Tier::Sharing::None;
  ++moves_;
  lock.unlock();
  Status written = spill_->write(*slot, at, sharing);
  lock.lock();
  --moves_;
  changed_.notify_all();

  storage = find(at, id);
  if (storage != nullptr) storage->writing = false;
  if (storage == nullptr || storage->changed) {
    spill_->give(*slot);
    return success();
  }
  if (!written) {
    spill_->give(*slot);
    store_.protect(at, Access::ReadWrite);
    spill_failure_ = written.error().text();
    return written;
  }
  storage->slot = *slot;
  spill_failure_.clear();
  counts_.written += storage->span;
  return success();
}

// Space in the file. With memory and file both full nothing could change places any more, so as much as the largest
// storage needs is kept in reserve, and given up only to bring something back.
Result<SpillSlot> PagerCore::take_slot(Bytes span, For whom) {
  if (whom == For::New && (!reserve_ || reserve_->size < largest_)) {
    give_up_reserve();
    ULLAGE_TRY_VALUE(reserve_, take_from_file(largest_));
  }
  Result<SpillSlot> slot = take_from_file(span);
  if (slot || whom == For::New || !reserve_) return slot;
  give_up_reserve();
  return spill_->take(span);
}

void PagerCore::give_up_reserve() {
  if (reserve_) spill_->give(*reserve_);
  reserve_.reset();
}

// Where the file is full, copies of what is resident anyway make way.
Result<SpillSlot> PagerCore::take_from_file(Bytes span) {
  Result<SpillSlot> slot = spill_->take(span);
  for (auto it = storages_.begin(); !slot && it != storages_.end(); ++it) {
    if (!it->second.clean() || it->second.writing) continue;
    make_writable(it->first, it->second);
    slot = spill_->take(span);
  }
  return slot;
}

void PagerCore::make_writable(Address at, Pageable& storage) {
  if (storage.where != Where::Resident || !storage.read_only()) return;
  storage.changed = true;
  storage.unchanged = false;
  if (storage.slot) spill_->give(*storage.slot);
  storage.slot.reset();
  store_.protect(at, Access::ReadWrite);
}

// Resident when this returns nothing, or gone.
std::optional<Shortage> PagerCore::bring_back(Lock& lock, Address at, StorageId id, For whom) {
  for (Tried tried;;) {
    Pageable* storage = find(at, id);
    if (storage == nullptr || storage->where == Where::Resident) return std::nullopt;
    const bool by_another = storage->recomputing() && storage->recomputing_on != std::this_thread::get_id();
    if (storage->where == Where::Returning || (storage->where == Where::Dropped && by_another)) {
      changed_.wait(lock);
      continue;
    }
    if (storage->where == Where::Dropped) {
      if (std::optional<Shortage> failed = recompute(lock, at, id, whom == For::Fault)) return failed;
      continue;
    }
    if (storage->staged) return read_in(lock, at, id, *storage->staged);
    // The parent goes on meanwhile, and cannot ask for room here: what a child read, and can read again, goes early.
    while (in_child_ && present() + storage->span > childs_share_) {
      if (make_room(lock, Refusal{}, whom) == Evicted::None) break;
    }
    const std::variant<Address, Refusal> staged = store_.stage(at);
    if (const auto* refusal = std::get_if<Refusal>(&staged)) {
      if (std::optional<Shortage> none = make_room_or_recount(lock, *refusal, whom, tried)) return none;
      continue;
    }
    return read_in(lock, at, id, std::get<Address>(staged));
  }
}

// Fills the staged pages, and moves them in at once: no thread ever sees half of it.
std::optional<Shortage> PagerCore::read_in(Lock& lock, Address at, StorageId id, Address staged) {
  Pageable* storage = find(at, id);
  const SpillSlot slot = *storage->slot;
  storage->where = Where::Returning;
  if (storage->staged) --staged_;
  storage->staged.reset();
  ++moves_;
  lock.unlock();
  const Status read = spill_->read(slot, staged);
  lock.lock();
  --moves_;
  changed_.notify_all();

  storage = find(at, id);
  if (storage == nullptr) {
    store_.unstage(staged);
    spill_->give(slot);
    return std::nullopt;
  }
  if (!read) {
    store_.unstage(staged);
    storage->where = Where::Spilled;
    Shortage failed;
    failed.refusal.requested = storage->span;
    failed.spill_failure = read.error().text();
    return failed;
  }
  ULLAGE_CHECK(store_.settle(at, staged, Access::Read), "the kernel moves pages no more (see vm.max_map_count)");
  storage->where = Where::Resident;
  tell(at, Settings::Moved::Back);
  storage->unchanged = true;
  storage->healed = 0;
  counts_.restored += storage->span;
  counts_.spilled_now -= storage->span;
  return std::nullopt;
}

}  // namespace ullage::store
