// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/pager.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "ullage/store/pager_core.h"

namespace ullage::store {
namespace {

// In percent of the limit. Below it ops are not followed, so that a program that fits does not pay for it.
constexpr std::uint64_t kPressurePercent = 70;
// After more faults in a row at one address that is resident and writable, the fault is the program's own error.
constexpr int kMostSpurious = 64;
// Faults in a row that lacked room, with no op or allocation between them, at storages that one of the last kLastFaults
// had brought back. If there are more, the room is too small for the program to make progress.
constexpr int kMostFruitless = 64;
// If room is lacking at a fault, the storages that this many last faults brought back count as needed together.
constexpr std::uint64_t kLastFaults = 16;

std::uint64_t now_ns() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

Seconds now_seconds() { return {static_cast<double>(now_ns()) * 1e-9}; }

// Waits nest, because the ops that recompute a storage may wait too. Only the outermost wait counts.
thread_local int waits_here = 0;

Shortage nothing_moves_now(Bytes away) {
  Shortage missing;
  missing.refusal.requested = away;
  missing.spill_failure =
      "no tensor can be moved while a CUDA graph is captured; run the same work once just before the capture, or state "
      "a larger budget";
  return missing;
}

}  // namespace

PagerCore::Waiting::Waiting(PagerCore& pager) : pager_(pager), began_(now_ns()) { ++waits_here; }

PagerCore::Waiting::~Waiting() {
  if (--waits_here == 0) pager_.waited_ns_.fetch_add(now_ns() - began_);
}

std::unique_ptr<Pager> Pager::create(Store& store, Tier* spill, Settings settings) {
  return std::make_unique<PagerCore>(store, spill, std::move(settings));
}

PagerCore::PagerCore(Store& store, Tier* spill, Settings settings)
    : store_(store), spill_(spill), settings_(std::move(settings)) {}

PagerCore::ThreadOps& PagerCore::ops_here() {
  static thread_local ThreadOps ops;
  return ops;
}

std::variant<Address, Shortage> PagerCore::allocate(Bytes size) {
  std::variant<Address, Refusal> placed = store_.allocate(size);
  Lock lock(lock_);
  if (std::holds_alternative<Refusal>(placed)) {
    under_pressure_.store(true);
    const Waiting waiting(*this);
    Tried tried;
    while (const auto* refusal = std::get_if<Refusal>(&placed)) {
      if (std::optional<Shortage> none = make_room_or_recount(lock, *refusal, For::New, tried)) return *none;
      placed = store_.allocate(size);
    }
  }
  const Address at = std::get<Address>(placed);
  fruitless_ = 0;
  fruitless_tries_ = {};
  if (size >= Store::kLeastRange) {
    Pageable& storage = storages_[at];
    storage = Pageable{};
    storage.id = {next_id_++};
    storage.size = size;
    storage.span = store_.span(size);
    storage.used_at = history_.now();
    storage.met = !settings_.libraries_take_blocks;
    if (!storage.met) pin(storage);
    largest_ = std::max(largest_, storage.span);
    ThreadOps& ops = ops_here();
    if (!ops.frames.empty()) {
      pin(storage);
      ops.held.push_back({at, storage.id, true});
    }
  }
  note_pressure();
  return at;
}

Bytes PagerCore::free(Address at) {
  bool gives_back = false;
  {
    Lock lock(lock_);
    await_written(lock, at);
    if (const auto found = storages_.find(at); found != storages_.end()) {
      Pageable& storage = found->second;
      history_.add_death(storage.last_use);
      if (storage.pins > 0) pinned_ -= storage.span;
      if (storage.where == Where::Resident && storage.read_only()) store_.protect(at, Access::ReadWrite);
      gives_back = storage.shared && !storage.writing;  // a thread that writes it out still reads its pages
      diverge(storage);  // what stays idle goes to another storage, which will be written to
      if (storage.where == Where::Dropped) counts_.dropped_now -= storage.span;
      if (storage.where == Where::Spilled || storage.where == Where::Returning) counts_.spilled_now -= storage.span;
      // A thread that is reading or writing it now gives the slot back itself.
      if (storage.where != Where::Returning) forget_copies(storage);
      if (storage.recomputing()) changed_.notify_all();
      if (settings_.used) settings_.used(at, storage.span);
      storages_.erase(found);
    }
  }
  return store_.free(at, gives_back);
}

std::optional<Shortage> PagerCore::begin_op(OpSignature signature, std::span<const OpInput> inputs) {
  if (settings_.evict_all) evict_all();
  Lock lock(lock_);
  fruitless_ = 0;
  fruitless_tries_ = {};
  ThreadOps& ops = ops_here();
  const std::size_t first = ops.held.size();
  Frame& frame = ops.frames.emplace_back();
  frame.signature = signature;
  frame.first = first;
  frame.first_file = ops.files.size();
  frame.copying = std::exchange(ops.not_copied, {});
  Bytes foreign{};
  Bytes away{};
  const Bytes diverged = diverged_;
  for (const OpInput& input : inputs) {
    const auto found = around(input.storage);
    if (found == storages_.end()) {
      if (store_.owns(input.storage)) continue;
      if (holds_file(input.storage)) {
        hold_file(input);
      } else {
        foreign += input.size;
      }
      diverge_outside(input, frame);
      continue;
    }
    if (input.sliceable && found->second.pins == 0) ops.frames.back().sliceable += found->second.span;
    pin(found->second);
    use_inherited(found->second);
    ++found->second.ops;
    meet(found->second);
    if (captures_ > 0 && !std::exchange(found->second.captured, true)) pin(found->second);
    const bool surely_read = settings_.notices_writes || input.only_read || found->second.saves > 0;
    const bool written = input.written || !surely_read;
    ops.held.push_back({found->first, found->second.id, written});
    if (written) diverge(found->second, &frame);
    if (written && found->second.read_only()) make_writable(found->first, found->second);
    if (found->second.where != Where::Resident) away += found->second.span;
  }
  counts_.foreign_peak = std::max(counts_.foreign_peak, foreign);
  sliceable_ += ops.frames.back().sliceable;
  note_at_once({});
  if (diverged_ > diverged && captures_ == 0) give_way(lock);
  if (ops.frames.back().files_coming > Bytes{}) {
    const Waiting waiting(*this);
    if (std::optional<Shortage> missing = make_room_for_files(lock)) {
      give_frame_up();
      return missing;
    }
  }
  if (away == Bytes{}) return std::nullopt;

  const Waiting waiting(*this);
  if (captures_ > 0) {
    give_frame_up();
    return nothing_moves_now(away);
  }
  for (std::size_t i = first; i < ops.held.size(); ++i) {
    const Held held = ops.held[i];
    if (std::optional<Shortage> missing = bring_back(lock, held.at, held.id, For::Input)) {
      give_frame_up();
      return missing;
    }
    if (Pageable* storage = find(held.at, held.id); storage != nullptr && held.written) {
      make_writable(held.at, *storage);
    }
  }
  return std::nullopt;
}

void PagerCore::end_op(bool remember, std::span<const Address> made) {
  const Lock lock(lock_);
  for (const Address at : made) {
    if (const auto found = storages_.find(at); found != storages_.end()) meet(found->second);
  }
  close_frame(remember);
}

void PagerCore::meet(Pageable& storage) {
  if (!std::exchange(storage.met, true)) unpin(storage);
}

// Ends an op that is refused before it runs. What it announced is not copied yet, and no other op will announce it, so
// it counts until this thread's next op has ended.
void PagerCore::give_frame_up() {
  ThreadOps& ops = ops_here();
  ops.not_copied = std::exchange(ops.frames.back().copying, {});
  close_frame(false);
}

// Ends the innermost op of this thread. `record`: the program ran it, so it goes into the history.
void PagerCore::close_frame(bool record) {
  ThreadOps& ops = ops_here();
  ULLAGE_CHECK(!ops.frames.empty(), "an op ends that did not begin");
  const Frame frame = ops.frames.back();
  const OpId self = record ? history_.add_op(frame.signature, now_seconds()) : OpId{};
  for (std::size_t i = frame.first; i < ops.held.size(); ++i) {
    Pageable* storage = find(ops.held[i].at, ops.held[i].id);
    if (storage == nullptr) continue;
    unpin(*storage);
    if (settings_.used) settings_.used(ops.held[i].at, storage->span);
    if (!record) continue;
    storage->last_use = history_.add_use(storage->last_use);
    storage->used_at = self;
  }
  if (ops.files.size() > frame.first_file) release_files(frame, record ? std::optional(self) : std::nullopt);
  sliceable_ -= frame.sliceable;
  if (frame.copying > Bytes{}) settings_.copied(frame.copying);
  ops.held.resize(frame.first);
  ops.frames.pop_back();
}

bool PagerCore::fits(std::span<const OpInput> inputs) {
  const Lock lock(lock_);
  Bytes of_inputs;
  Bytes of_others;  // small inputs, and those that are not the pool's; their outputs take the pool's room all the same
  for (const OpInput& input : inputs) {
    const auto found = storages_.find(input.storage);
    if (found == storages_.end()) {
      of_others += input.size;
    } else if (found->second.pins == 0) {
      of_inputs += found->second.span;
    }
  }
  const Bytes of_outputs = of_inputs + of_others;  // at most, for ops over lists
  return fits_beside_pinned(of_inputs + of_outputs);
}

void PagerCore::saved(Address at) {
  const Lock lock(lock_);
  const auto found = storages_.find(at);
  if (found != storages_.end() && found->second.saves++ == 0) found->second.saved_at = history_.now();
}

void PagerCore::released(Address at) {
  const Lock lock(lock_);
  const auto found = storages_.find(at);
  // It may have been saved before saves were followed.
  if (found != storages_.end() && found->second.saves > 0) --found->second.saves;
}

std::optional<Shortage> PagerCore::bring_back(Address at, bool may_write) {
  Lock lock(lock_);
  const auto found = around(at);
  if (found == storages_.end()) return std::nullopt;
  const Address begin = found->first;
  const StorageId id = found->second.id;
  if (found->second.where != Where::Resident) {
    const Waiting waiting(*this);
    if (std::optional<Shortage> missing = bring_back(lock, begin, id, For::Input)) return missing;
  }
  Pageable* storage = find(begin, id);
  if (may_write && !settings_.notices_writes && storage != nullptr) make_writable(begin, *storage);
  return std::nullopt;
}

Pager::FaultAnswer PagerCore::on_fault(Address at) {
  static thread_local Address last{};
  static thread_local int in_a_row = 0;
  Lock lock(lock_);
  const auto found = around(at);
  if (found == storages_.end()) {
    // A page that was being let go while the program wrote to it: by now it can be written to (FilePages::let_go()).
    if (!holds_file(at)) return {Fault::NotOurs, {}, {}};
    in_a_row = last == at ? in_a_row + 1 : 0;
    last = at;
    return {in_a_row > kMostSpurious ? Fault::NotOurs : Fault::Healed, {}, {}};
  }
  const Address begin = found->first;
  Pageable& storage = found->second;
  if (storage.where == Where::Resident) {
    if (storage.read_only()) {
      make_writable(begin, storage);
      return {Fault::Healed, {}, {}};
    }
    // Another thread was faster. If it is always the same address, missing pages are not the cause.
    in_a_row = last == at ? in_a_row + 1 : 0;
    last = at;
    return {in_a_row > kMostSpurious ? Fault::NotOurs : Fault::Healed, {}, {}};
  }
  if (!settings_.heal_faults) return {Fault::Failed, "a tensor that was moved out was accessed outside of any op", {}};
  const bool again = storage.healed_lately(counts_.faults, kLastFaults);
  const std::uint64_t rooms = rooms_wanted_at_faults_;
  ++counts_.faults;
  const Waiting waiting(*this);
  const StorageId id = storage.id;
  if (fruitless_ > kMostFruitless) {
    if (!fruitless_tries_.another([&](bool finally) { return somebody_gives_way(lock, finally); }))
      return no_room_at_a_fault();
    fruitless_ = 0;
  }
  if (const std::optional<Shortage> missing = bring_back(lock, begin, id, For::Fault)) {
    if (missing->spill_failure.empty()) return no_room_at_a_fault();
    return {Fault::Failed, missing->spill_failure, {}};
  }
  // A fault that found room tells nothing: another thread may have left it, as the watch has storages evicted all the
  // time. So the count stays as it is then.
  if (rooms_wanted_at_faults_ != rooms) fruitless_ = again ? fruitless_ + 1 : 0;
  if (Pageable* back = find(begin, id)) back->healed = counts_.faults;
  return {Fault::Healed, {}, {}};
}

// The faulting instructions need several storages at once, and there is no room for all. So each storage that is
// brought back is evicted again before it is used.
Pager::FaultAnswer PagerCore::no_room_at_a_fault() {
  Bytes together{};
  for (const auto& [at, storage] : storages_) {
    if (storage.healed_lately(counts_.faults, kLastFaults)) together += storage.span;
  }
  const Bytes at_once = std::max(note_at_once({}), together + store_.counts().slabs);
  keep_at_once(at_once);
  return {Fault::Failed, "there is no room for the tensors that are in use at once", at_once};
}

Bytes PagerCore::trim(Bytes headroom) {
  Lock lock(lock_);
  if (captures_ > 0) return {};  // idle pages stay too, because taking them away would wait for the device
  Bytes given_back = as_a_move(lock, [&] { return store_.trim(headroom); });
  let_go_of_unforeseen_reads(headroom);
  if (store_.excess() == Bytes{}) return given_back;
  given_back += give_way(lock);
  return given_back + store_.trim(headroom);  // gives back what the background thread evicted meanwhile
}

// Evicts until the pool holds no more than its limit. Returns the bytes that went back to the system.
Bytes PagerCore::give_way(Lock& lock) {
  Bytes given_back{};
  while (store_.excess() > Bytes{}) {
    under_pressure_.store(true);
    if (make_room(lock, Refusal{}, For::New) == Evicted::None) break;
    given_back += store_.trim();
  }
  return given_back;
}

Bytes PagerCore::drop_idle() {
  const Lock lock(lock_);
  return captures_ > 0 ? Bytes{} : store_.drop_idle();
}

void PagerCore::begin_capture() {
  Lock lock(lock_);
  ++captures_;
  changed_.wait(lock, [this] { return moves_ == 0; });
}

void PagerCore::end_capture() {
  const Lock lock(lock_);
  --captures_;
  changed_.notify_all();
}

void PagerCore::evict_all() {
  Lock lock(lock_);
  if (captures_ > 0) return;
  std::vector<Held> all;
  for (const auto& [at, storage] : storages_) all.push_back({at, storage.id, false});
  for (const Held& one : all) {
    const Pageable* storage = find(one.at, one.id);
    if (storage != nullptr && storage->where == Where::Resident && storage->pins == 0) {
      evict(lock, one.at, one.id, For::New);
    }
  }
}

PagerCounts PagerCore::counts() const {
  const Lock lock(lock_);
  PagerCounts counts = counts_;
  counts.files_there = files_there_;
  counts.spill_failure = spill_failure_;
  counts.waited = {static_cast<double>(waited_ns_.load()) * 1e-9};
  return counts;
}

void PagerCore::before_fork() {
  Lock lock(lock_);
  recompute_all(lock);
  // All bytes that are resident now become the child's too. A page that either process writes is copied. A page that
  // the parent evicts stays in memory as long as the child lives, because the child cannot write it out. So if this
  // process evicts anyway, nothing stays resident; otherwise no more than there is room for twice.
  const Bytes spilled = counts_.spilled;
  const bool evicts = spilled > spilled_for_forks_;
  while (!in_child_ && store_.room() < (evicts ? store_.counts().limit : store_.counts().limit / 2)) {
    under_pressure_.store(true);
    if (make_room(lock, Refusal{}, For::New) == Evicted::None) break;
  }
  changed_.wait(lock, [this] { return moves_ == 0 && recomputes_ == 0; });
  if (!evicts) spilled_for_forks_ += counts_.spilled - spilled;
  store_.drop_idle();
  for (auto& [at, storage] : storages_) {
    if (storage.where != Where::Resident || std::exchange(storage.shared, true)) continue;
    shared_by_forks_ += storage.span.count;
  }
  forked_ = true;
  written_since_fork_.clear();
  if (spill_ != nullptr) spill_->before_fork();
  store_.fork_lock().lock();
  if (settings_.files != nullptr) settings_.files->fork_lock().lock();
  lock.release();  // held until after the fork
}

void PagerCore::after_fork_in_parent() {
  if (settings_.files != nullptr) settings_.files->fork_lock().unlock();
  store_.fork_lock().unlock();
  diverge(store_.counts().slabs);  // small blocks are written all the time, so they do not stay shared
  if (spill_ != nullptr) spill_->after_fork_in_parent();
  lock_.unlock();
}

void PagerCore::after_fork_in_child() {
  if (settings_.files != nullptr) settings_.files->fork_lock().unlock();
  forget_files();
  store_.fork_lock().unlock();
  if (spill_ != nullptr) spill_->after_fork_in_child();
  in_child_ = true;
  ThreadOps& ops = ops_here();
  for (Frame& frame : ops.frames) frame.copying = {};  // the parent announced them, in its own figures
  ops.not_copied = {};
  for (auto& [at, storage] : storages_) storage.inherited = true;
  childs_share_ = store_.counts().limit / 2;  // of the parent's last limit: the child keeps as much as the parent
  lock_.unlock();
}

Pageable* PagerCore::find(Address at, StorageId id) {
  const auto found = storages_.find(at);
  return found != storages_.end() && found->second.id == id ? &found->second : nullptr;
}

// Finds the storage whose range holds this address.
Pageables::iterator PagerCore::around(Address at) {
  const auto after = storages_.upper_bound(at);
  if (after == storages_.begin()) return storages_.end();
  const auto before = std::prev(after);
  return at < before->first + before->second.span ? before : storages_.end();
}

// On a device without page faults, waits until the storage is not being written out (or is gone). Such a device has no
// way to say that pages were taken away from under a copy.
void PagerCore::await_written(Lock& lock, Address at) {
  if (settings_.heal_faults) return;
  const auto found = storages_.find(at);
  if (found == storages_.end() || !found->second.writing) return;
  const Waiting waiting(*this);
  const StorageId id = found->second.id;
  changed_.wait(lock, [&] {
    const Pageable* now = find(at, id);
    return now == nullptr || !now->writing;
  });
}

// Takes the pages of a storage away from it.
void PagerCore::leave_pages(Address at, Pageable& storage) {
  const bool shared = storage.shared;
  diverge(storage);
  shared ? store_.give_back(at) : store_.vacate(at);
}

// Call this before the pages of a storage are written to or given up: they are then no longer shared with a fork.
// `writer`: the op that begins and will write them.
void PagerCore::diverge(Pageable& storage, Frame* writer) {
  if (!std::exchange(storage.shared, false)) return;
  shared_by_forks_ -= storage.span.count;
  use_inherited(storage);  // a child may write to it or free it without an op that was followed
  if (settings_.left_to_children) settings_.left_to_children(storage.span);
  diverge(storage.span, writer);
}

// Call this when an op or a fault uses a storage, and when its pages stop being shared.
void PagerCore::use_inherited(Pageable& storage) {
  if (std::exchange(storage.inherited, false) && settings_.used_inherited) settings_.used_inherited(storage.span);
}

void PagerCore::diverge(Bytes bytes, Frame* writer) {
  diverged_ += bytes;
  if (writer != nullptr && settings_.copying) {
    writer->copying += bytes;
    settings_.copying(bytes);
  }
  if (settings_.diverged) settings_.diverged(bytes);
}

// Does the same for an op's input outside the pool, such as a weight in a mapped file. Its pages are shared until this
// process first writes them after a fork.
void PagerCore::diverge_outside(const OpInput& input, Frame& writer) {
  if (!forked_ || !input.written) return;
  if (written_since_fork_.insert(input.storage.value).second) diverge(input.size, &writer);
}

void PagerCore::pin(Pageable& storage) {
  if (storage.pins++ == 0) pinned_ += storage.span;
}

void PagerCore::unpin(Pageable& storage) {
  if (--storage.pins == 0) pinned_ -= storage.span;
}

// Returns how many bytes must be resident at this moment, `request` included, and notes the number.
Bytes PagerCore::note_at_once(Bytes request) {
  const Bytes at_once = saturating_sub(pinned_ + files_in_use_, sliceable_) + store_.counts().slabs + request;
  counts_.files_at_once_peak = std::max(counts_.files_at_once_peak, files_in_use_);
  keep_at_once(at_once);
  return at_once;
}

void PagerCore::keep_at_once(Bytes at_once) {
  counts_.at_once_peak = std::max(counts_.at_once_peak, at_once);
  at_once_lately_ = std::max(at_once_lately_, at_once);
}

std::vector<Bytes> PagerCore::kept_for_libraries() {
  const Lock lock(lock_);
  std::vector<Bytes> sizes;
  for (const auto& [at, storage] : storages_) {
    if (!storage.met) sizes.push_back(storage.size);
  }
  return sizes;
}

Bytes PagerCore::take_at_once() {
  const Lock lock(lock_);
  note_at_once({});
  return std::exchange(at_once_lately_, {});
}

Bytes PagerCore::movable() {
  const Lock lock(lock_);
  // Before there is pressure, ops are not followed, so it is not known what they need.
  const bool can_move = under_pressure() && spill_ != nullptr && !in_child_ && spill_failure_.empty();
  return can_move ? saturating_sub(store_.counts().resident, counts_.at_once_peak + shared_by_forks()) : Bytes{};
}

// Returns the resident bytes of live storages.
Bytes PagerCore::present() const {
  const StoreCounts counts = store_.counts();
  return counts.resident - counts.idle;
}

Shortage PagerCore::shortage(const Refusal& refusal, const Tried& tried) {
  const bool small = refusal.requested < Store::kLeastRange;
  const Bytes request = small ? Slabs::kSlab : store_.span(refusal.requested);
  // The request itself is not noted: the program may go on without it.
  const Bytes at_once = note_at_once({}) + (tried.is_pinned ? Bytes{} : request);
  return {refusal, at_once, pinned_, spill_ != nullptr && !in_child_, spill_failure_};
}

// Is there room for so many bytes beside what cannot be evicted now?
bool PagerCore::fits_beside_pinned(Bytes bytes) const {
  const StoreCounts counts = store_.counts();
  return pinned_ + counts.slabs + bytes <= counts.limit + files_to_let_go();
}

void PagerCore::note_pressure() {
  note_at_once({});
  if (under_pressure()) return;
  const StoreCounts counts = store_.counts();
  // The pressure also begins when two more storages of the largest size would pass the limit. Ops must be followed
  // before they meet the limit, because the storages of an op that began unfollowed are not pinned.
  // Mapped files that are not in memory yet count as if they were.
  const Bytes files = settings_.files != nullptr ? settings_.files->mapped() : Bytes{};
  const Bytes held = counts.resident - counts.idle + saturating_sub(files, files_there_ + files_own_);
  if (held > counts.limit / 100 * kPressurePercent || held + largest_ * 2 > counts.limit) under_pressure_.store(true);
}

}  // namespace ullage::store
