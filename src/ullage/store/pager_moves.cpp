// SPDX-License-Identifier: Apache-2.0
// The pager's moves: chooses what is evicted, writes bytes out, and reads them back.
//
// Functions with a Lock are called with it held, and give it up while they copy or wait. Meanwhile a storage may be
// freed, and its address may become another storage's. So they find it again by address and id afterwards.
#include "ullage/store/pager_core.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ullage::store {
namespace {

// The storages that the last four page faults brought back ("healed") are evicted last. One instruction may read one
// and write another. If each fault evicted the other storage, the instruction would fault for ever.
constexpr std::uint64_t kKeptAfterFault = 4;
constexpr int kWritesForAFault = 3;
constexpr int kMostRecounts = 20;  // each takes some 10 ms, at most some seconds
// The ranks of storages that could be evicted; the highest goes first. Only faults evict pinned storages, because they
// cannot be refused. They do so before they evict one that was just healed, which would make the same thread fault
// again.
constexpr int kJustHealed = 0;
constexpr int kPinned = 1;
constexpr int kFree = 2;

// On a card a copy to the tier waits for the work on the storage's bytes that was given to the card before. If an op
// reads the storage meanwhile, the copy waits again. After so many waits it is given up.
constexpr int kMostWaits = 8;

// Returns f(), and sets `took` to the time that it took.
template <class F>
auto timed(Seconds& took, const F& f) {
  const auto began = std::chrono::steady_clock::now();
  auto result = f();
  took = {std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
  return result;
}

}  // namespace

// Decides, just before the device starts to copy a storage to the tier, whether the copy may begin (CopyGate).
class PagerCore::Gate final : public CopyGate {
 public:
  // Called with the lock held.
  Gate(PagerCore& pager, Address at, const Pageable& storage) : pager_(pager), at_(at), id_(storage.id) {
    if (storage.pins == 0) ops_ = storage.ops;
  }

  // Calls `begin`, which queues the copy on the device, with the lock held. So no op can begin between the last check
  // and the copy.
  Answer pass(const std::function<void()>& begin) override {
    const Lock lock(pager_.lock_);
    Pageable* storage = pager_.find(at_, id_);
    if (storage == nullptr || storage->changed) return Answer::Never;
    if (storage->pins > 0 || waits_ == kMostWaits) {
      pager_.make_writable(at_, *storage);  // the copy is worthless
      return Answer::Never;
    }
    if (std::exchange(ops_, storage->ops) != storage->ops) {
      ++waits_;
      return Answer::WaitAgain;
    }
    begin();
    return Answer::Begun;
  }

 private:
  PagerCore& pager_;
  const Address at_;
  const StorageId id_;
  std::optional<std::uint64_t> ops_;  // Pageable::ops when the wait began; nothing: an op was in flight
  int waits_ = 0;
};

// Makes room for a request that the store refused: lets pages of mapped files go, else gives up staged pages, else
// evicts one storage, else waits for a move to end.
PagerCore::Evicted PagerCore::make_room(Lock& lock, const Refusal& refusal, For whom) {
  if (refusal.reason == Refusal::Reason::AddressSpace || captures_ > 0) return Evicted::None;
  if (whom == For::Fault) ++rooms_wanted_at_faults_;
  if (files_there_ > Bytes{}) {
    const Bytes missing = refusal.needed > refusal.limit ? refusal.needed - refusal.limit : store_.excess();
    if (let_files_go(missing) > Bytes{}) return Evicted::One;
  }
  if (unstage_one()) return Evicted::One;
  bool clean_only = spill_ == nullptr || in_child_;
  // A thread at a page fault cannot get an error, so a failed write is tried again before the process has to end.
  for (int writes_left = whom == For::Fault ? kWritesForAFault : 1;;) {
    const auto victim = farthest(whom, clean_only);
    if (victim != storages_.end()) {
      const Evicted evicted = evict(lock, victim->first, victim->second.id, whom);
      if (evicted == Evicted::One) ++counts_.evicted_on_demand;
      if (evicted != Evicted::None) return evicted;
      if (clean_only) return Evicted::None;
      clean_only = --writes_left == 0;  // the write failed; clean storages need none
      continue;
    }
    if (moves_ == 0) return Evicted::None;
    ++starving_;  // keeps the background thread from using the room that the ending move makes
    changed_.wait(lock);
    --starving_;
    return Evicted::Waited;
  }
}

// As make_room(). If nothing can be evicted and the limit is the reason, has other processes give way and the limit
// measured anew. It measures kMostRecounts times at most, because others may be about to give memory back, and begins
// to count these times anew while others grow (Limit::others_grow()). At last it calls Settings::last_resort. Returns
// nothing if the request should be tried again.
std::optional<Shortage> PagerCore::make_room_or_recount(Lock& lock, const Refusal& refusal, For whom, Tried& tried) {
  if (make_room(lock, refusal, whom) != Evicted::None) return std::nullopt;
  const bool over = refusal.reason == Refusal::Reason::OverLimit;
  if (!over) return shortage(refusal, tried);
  if (waits_for_others(tried)) tried.recounts = 0;
  if (tried.recounts++ < kMostRecounts && recount_limit(lock, refusal.needed)) return std::nullopt;
  if (tried.last.another([&](bool finally) { return somebody_gives_way(lock, finally); })) return std::nullopt;
  return shortage(refusal, tried);
}

bool PagerCore::waits_for_others(Tried& tried) {
  if (!store_.others_grow()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!tried.waits_until) tried.waits_until = now + settings_.waits_for_others;
  return now < *tried.waits_until;
}

// Waits for the launcher, up to some seconds; other threads use the pager meanwhile.
bool PagerCore::recount_limit(Lock& lock, Bytes needed) {
  lock.unlock();
  const bool counted = store_.recount_limit(needed);
  lock.lock();
  return counted;
}

bool PagerCore::somebody_gives_way(Lock& lock, bool finally) {
  if (!settings_.last_resort || (in_child_ && !finally)) return false;
  lock.unlock();
  const bool gave_way = settings_.last_resort(finally);
  lock.lock();
  return gave_way;
}

bool PagerCore::just_healed(const Pageable& storage) const {
  return storage.healed_lately(counts_.faults, kKeptAfterFault);
}

// Finds the resident storage to evict first: among those of the highest rank, the one that is needed last.
Pageables::iterator PagerCore::farthest(For whom, bool clean_only) {
  auto best = storages_.end();
  std::pair<int, std::uint64_t> best_key;  // rank, distance
  for (auto it = storages_.begin(); it != storages_.end(); ++it) {
    const Pageable& storage = it->second;
    if (storage.where != Where::Resident || (clean_only && !storage.clean())) continue;
    const bool pinned = storage.pins > 0;
    if (pinned && whom != For::Fault) continue;
    const int rank = pinned ? kPinned : kFree;
    const std::pair<int, std::uint64_t> key{just_healed(storage) ? kJustHealed : rank, distance(storage, history_)};
    if (best == storages_.end() || key > best_key) {
      best = it;
      best_key = key;
    }
  }
  return best;
}

// Evicts a resident storage. Writes it out first unless it is clean. Returns Evicted::None if it cannot be written.
PagerCore::Evicted PagerCore::evict(Lock& lock, Address at, StorageId id, For whom) {
  Pageable* storage = find(at, id);  // it is there: the caller has held the lock since it found it
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
  leave_pages(at, storage);
  storage.where = Where::Spilled;
  tell(at, Settings::Moved::Away);
  if (storage.unchanged) counts_.rewrites_avoided += storage.span;
  counts_.spilled += storage.span;
  counts_.spilled_now += storage.span;
  counts_.spilled_peak = std::max(counts_.spilled_peak, counts_.spilled_now);
}

// Gives up the staged pages of one storage that was to be read ahead. False: there are none.
bool PagerCore::unstage_one() {
  if (staged_ == 0) return false;
  const auto found =
      std::find_if(storages_.begin(), storages_.end(), [](const auto& one) { return one.second.staged.has_value(); });
  store_.unstage(*found->second.staged);
  found->second.staged.reset();
  --staged_;
  return true;
}

// Copies a resident storage into the tier. Unless it is written to or freed meanwhile (which is no error), it is then
// clean.
Status PagerCore::write_out(Lock& lock, Address at, StorageId id, For whom) {
  Pageable* storage = find(at, id);
  const Result<SpillSlot> slot = take_slot(storage->span, whom);
  if (!slot) {
    spill_failure_ = slot.error().text();
    return slot.error();
  }
  // From here on the first write is a fault, and the copy is given up then. A write that nobody noticed would be lost.
  if (!store_.protect(at, Access::Read)) {
    spill_->give(*slot);
    spill_failure_ = "the kernel protects no more pages (see vm.max_map_count)";
    return Error{Error::Kind::System, spill_failure_, ""};
  }
  storage->writing = true;
  storage->changed = false;
  const auto sharing = storage->shared ? Tier::Sharing::WithAFork : Tier::Sharing::None;
  Gate gate(*this, at, *storage);
  Seconds took;
  Status written =
      as_a_move(lock, [&] { return timed(took, [&] { return spill_->write(*slot, at, sharing, &gate); }); });

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
  counts_.writing.count += took.count;
  return success();
}

// Takes a slot in the tier. If memory and tier were both full, no storage could be brought back any more, because the
// one that has to leave for it would find no slot. So a slot as large as the largest storage is kept in reserve. Only
// evictions that make room for a storage to come back may use it.
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

// Takes a slot. If the tier is full, gives up copies of resident storages for it.
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

// Brings a storage back. If this returns nothing, the storage is resident, or was freed meanwhile.
std::optional<Shortage> PagerCore::bring_back(Lock& lock, Address at, StorageId id, For whom) {
  for (Tried tried;;) {
    Pageable* storage = find(at, id);
    if (storage == nullptr || storage->where == Where::Resident) return std::nullopt;
    use_inherited(*storage);
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
    // The parent runs on and cannot ask a forked child for room. So the child keeps to half of the pool's limit
    // (childs_share_): beyond that it evicts storages whose bytes are in the tier.
    while (in_child_ && present() + storage->span > childs_share_) {
      if (make_room(lock, Refusal{}, whom) == Evicted::None) break;
    }
    tried.is_pinned = storage->pins > 0;
    const std::variant<Address, Refusal> staged = store_.stage(at);
    if (const auto* refusal = std::get_if<Refusal>(&staged)) {
      if (std::optional<Shortage> none = make_room_or_recount(lock, *refusal, whom, tried)) return none;
      continue;
    }
    return read_in(lock, at, id, std::get<Address>(staged));
  }
}

// Fills the staged pages and then moves them all to the storage's address, so that no thread sees part of the bytes. On
// a card they are at that address already, and no op uses it before the storage is resident.
std::optional<Shortage> PagerCore::read_in(Lock& lock, Address at, StorageId id, Address staged) {
  Pageable* storage = find(at, id);
  const SpillSlot slot = *storage->slot;
  storage->where = Where::Returning;
  if (storage->staged) --staged_;
  storage->staged.reset();
  Seconds took;
  const Status read = as_a_move(lock, [&] { return timed(took, [&] { return spill_->read(slot, staged); }); });

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
  counts_.reading.count += took.count;
  counts_.spilled_now -= storage->span;
  return std::nullopt;
}

Pager::Copy PagerCore::copy_storage(Address into, Address from, Bytes size) {
  Lock lock(lock_);
  const auto to = storages_.find(into);
  const auto source = storages_.find(from);
  if (to == storages_.end() || source == storages_.end() || to == source) return Copy::NeedsBoth;
  // A tensor made of foreign bytes (numpy, DLPack) may begin where one of these storages does, and be shorter.
  if (to->second.size != size || source->second.size != size) return Copy::NeedsBoth;
  const bool can_move = settings_.heal_faults && spill_ != nullptr && !in_child_ && captures_ == 0;
  if (!can_move || source->second.pins > 0) return Copy::NeedsBoth;
  const Bytes both = to->second.pins > 0 ? source->second.span : source->second.span * 2;
  if (fits_beside_pinned(both)) return Copy::CanDoWithout;

  const StorageId into_id = to->second.id;
  const StorageId from_id = source->second.id;
  lock.unlock();
  spill(from);  // does nothing if it is away already
  lock.lock();
  const Waiting waiting(*this);
  Pageable* target = find(into, into_id);
  if (target == nullptr) return Copy::NeedsBoth;
  pin(*target);
  note_at_once({});
  Frame writer;
  diverge(*target, &writer);
  give_way(lock);  // for the copy of pages that were shared with a forked child
  const bool refused = bring_back(lock, into, into_id, For::Input).has_value();
  const bool done = !refused && read_over(lock, into, into_id, from, from_id);
  if (done && writer.copying > Bytes{}) settings_.copied(writer.copying);
  if (!done) ops_here().not_copied += writer.copying;  // the op that follows writes them
  target = find(into, into_id);
  if (target != nullptr) unpin(*target);
  if (done) return Copy::Done;
  return refused ? Copy::CanDoWithout : Copy::NeedsBoth;
}

// Reads the bytes of a spilled storage over those of a resident one. False: it is not spilled any more, or the tier
// failed. If the tier failed, the bytes of `into` are undefined. The op that follows overwrites them, or fails as well.
bool PagerCore::read_over(Lock& lock, Address into, StorageId into_id, Address from, StorageId from_id) {
  Pageable* target = find(into, into_id);
  Pageable* source = find(from, from_id);
  if (target == nullptr || target->where != Where::Resident || target->writing) return false;
  if (source == nullptr || source->where != Where::Spilled || source->staged) return false;
  make_writable(into, *target);
  const SpillSlot slot = *source->slot;
  target->writing = true;            // so that nobody writes it out meanwhile, not even for a fault
  source->where = Where::Returning;  // so that nobody moves it, and free() leaves its slot
  Seconds took;
  const Status read = as_a_move(lock, [&] { return timed(took, [&] { return spill_->read(slot, into); }); });
  target = find(into, into_id);
  if (target != nullptr) target->writing = false;
  source = find(from, from_id);
  if (source != nullptr) {
    source->where = Where::Spilled;
  } else {
    spill_->give(slot);
  }
  if (read) {
    counts_.restored += slot.size;
    counts_.reading.count += took.count;
  }
  return static_cast<bool>(read);
}

}  // namespace ullage::store
