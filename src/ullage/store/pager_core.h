// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementation of pager.h and planned_moves.h. One lock guards the state. It is released during input and output,
// so whatever was looked up before must be looked up again afterwards.
//
//   pager.cpp             what programs and ops call
//   pager_moves.cpp       moves one storage out or in
//   pager_background.cpp  moves storages ahead of need
//   pager_files.cpp       lets pages of mapped files go
//   planned_moves.cpp     carries out what a plan orders

#include "ullage/store/last_tries.h"
#include "ullage/store/pageable.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

namespace ullage::store {

class PagerCore final : public Pager, public PlannedMoves {
 public:
  PagerCore(Store& store, Tier* spill, Settings settings);

  std::variant<Address, Shortage> allocate(Bytes size) override;
  Bytes free(Address at) override;
  std::optional<Shortage> begin_op(OpSignature signature, std::span<const OpInput> inputs) override;
  void end_op(bool remember, std::span<const Address> made) override;
  bool fits(std::span<const OpInput> inputs) override;
  Copy copy_storage(Address into, Address from, Bytes size) override;
  void saved(Address at) override;
  void released(Address at) override;
  std::optional<Shortage> bring_back(Address at, bool may_write) override;
  FaultAnswer on_fault(Address at) override;
  Bytes trim(Bytes headroom) override;
  Bytes missing() override { return store_.missing(); }
  Bytes drop_idle() override;
  void evict_all() override;
  void run_in_background() override;
  void begin_capture() override;
  void end_capture() override;
  bool under_pressure() const override { return under_pressure_.load(std::memory_order_relaxed); }
  void follow_from_now_on() override { under_pressure_.store(true); }
  std::vector<Bytes> kept_for_libraries() override;
  Bytes take_at_once() override;
  bool holds_file(Address at) const override;
  void file_unmapped(AddressRange range) override;
  PagerCounts counts() const override;
  const Store& store() const override { return store_; }
  PlannedMoves& planned() override { return *this; }
  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;
  Bytes movable() override;
  Bytes shared_by_forks() const override { return Bytes{shared_by_forks_.load()}; }

  bool drop(Address at) override;
  bool spill(Address at) override;
  void write_ahead(Address at) override;
  void read_ahead(Address at) override;
  bool adopt(Address at, Address from) override;
  void set_recomputer(Recomputer* recomputer) override;
  void follow_plan(bool on) override;
  Bytes room() override;
  void watch_waste() override { store_.restart_present_peak(); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  // The reason why room is made: a new storage, an op's input, or a page fault. An input or a fault may use the
  // reserved slot of the tier. Only a fault may evict pinned storages, because it cannot be refused.
  enum class For { New, Input, Fault };
  // The outcome of an attempt to make room. One: the pages of one storage are free now. Waited: another thread changed
  // something meanwhile, so try again. None: nothing can be evicted.
  enum class Evicted { One, Waited, None };

  struct Held {
    Address at;
    StorageId id;
    bool written = false;  // by the op
  };
  // What an op uses of a mapped file.
  struct HeldFile {
    AddressRange pieces;
    bool written = false;  // by the op
  };
  struct Frame {
    OpSignature signature;
    std::size_t first = 0;       // index of its first storage in ThreadOps::held
    std::size_t first_file = 0;  // index of its first entry in ThreadOps::files
    Bytes sliceable;             // its parts of PagerCore::sliceable_, files_coming_ and files_in_use_
    Bytes files_coming;
    Bytes files_in_use;
    bool reads_part_of_a_file = false;  // OpInput::at_most
    Bytes copying;                      // shared by a fork until the op writes them
  };
  // The ops in flight of one thread, innermost last.
  struct ThreadOps {
    std::vector<Held> held;
    std::vector<HeldFile> files;
    std::vector<Frame> frames;
    Bytes not_copied;  // Frame::copying of an op that was refused
  };
  // A piece of a mapped file that was used.
  struct FilePiece : Uses {
    Bytes there;    // in memory when last measured
    Bytes of_file;  // the part of it that was not written, and so can be let go
    std::uint32_t pins = 0;
    bool stays = false;       // the kernel did not let it go
    bool was_let_go = false;  // it was let go, and none of it has been read since
    Bytes own() const { return saturating_sub(there, of_file); }
  };
  static ThreadOps& ops_here();
  // While this object exists, the time counts as waited for moves by a thread of the program.
  class Waiting {
   public:
    explicit Waiting(PagerCore& pager);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    PagerCore& pager_;
    const std::uint64_t began_;
  };

  Pageable* find(Address at, StorageId id);
  Pageables::iterator around(Address at);
  void tell(Address at, Settings::Moved what) const {
    if (settings_.moved) settings_.moved(at, what);
  }
  void await_written(Lock& lock, Address at);
  void diverge(Pageable& storage, Frame* writer = nullptr);
  void leave_pages(Address at, Pageable& storage);
  void use_inherited(Pageable& storage);
  void diverge(Bytes bytes, Frame* writer = nullptr);
  void diverge_outside(const OpInput& input, Frame& writer);
  Bytes give_way(Lock& lock);
  // The attempts that were made already to meet one request.
  struct Tried {
    int recounts = 0;
    std::optional<std::chrono::steady_clock::time_point> waits_until;  // for others that grow
    bool is_pinned = false;  // the request is for an input of the op in flight, so pinned_ has its bytes already
    LastTries last;
  };
  std::optional<Shortage> make_room_or_recount(Lock& lock, const Refusal& refusal, For whom, Tried& tried);
  bool waits_for_others(Tried& tried);
  bool recount_limit(Lock& lock, Bytes needed);
  bool somebody_gives_way(Lock& lock, bool finally);
  void pin(Pageable& storage);
  void meet(Pageable& storage);
  void unpin(Pageable& storage);
  void give_frame_up();
  void close_frame(bool record);
  Bytes note_at_once(Bytes request);
  void keep_at_once(Bytes at_once);
  Bytes present() const;
  bool fits_beside_pinned(Bytes bytes) const;
  Shortage shortage(const Refusal& refusal, const Tried& tried);
  void note_pressure();
  FaultAnswer no_room_at_a_fault();

  // pager_files.cpp
  template <class F>
  void each_piece(AddressRange pieces, const F& f);
  void hold_file(const OpInput& input);
  void release_files(const Frame& frame, std::optional<OpId> self);
  void measure(const HeldFile& held);
  void note(FilePiece& piece, const FilePages::Count& now);
  std::optional<Shortage> make_room_for_files(Lock& lock);
  Bytes let_files_go(Bytes wanted);
  void let_go_of_unforeseen_reads(Bytes headroom);
  void forget_files();
  // `found`: as in Settings::in_files.
  void tell_of_files(Bytes found = {}) const;
  Bytes files_to_let_go() const;

  class Gate;

  // Calls f() with the lock given up, and returns its result. Meanwhile a move is in flight.
  template <class F>
  auto as_a_move(Lock& lock, const F& f) {
    ++moves_;
    lock.unlock();
    auto result = f();
    lock.lock();
    --moves_;
    changed_.notify_all();
    return result;
  }

  // pager_moves.cpp. A function that takes a Lock may release it for a while; afterwards find() each Pageable* again.
  std::optional<Shortage> bring_back(Lock& lock, Address at, StorageId id, For whom);
  std::optional<Shortage> read_in(Lock& lock, Address at, StorageId id, Address staged);
  bool read_over(Lock& lock, Address into, StorageId into_id, Address from, StorageId from_id);
  Evicted make_room(Lock& lock, const Refusal& refusal, For whom);
  Evicted evict(Lock& lock, Address at, StorageId id, For whom);
  Status write_out(Lock& lock, Address at, StorageId id, For whom);
  Result<SpillSlot> take_slot(Bytes span, For whom);
  Result<SpillSlot> take_from_file(Bytes span);
  void give_up_reserve();
  bool just_healed(const Pageable& storage) const;
  Pageables::iterator farthest(For whom, bool clean_only);
  void make_writable(Address at, Pageable& storage);
  void take_pages(Address at, Pageable& storage);
  bool unstage_one();

  // pager_background.cpp
  bool carry_out_order(Lock& lock);
  bool bring_back_due(Lock& lock);
  bool write_farthest(Lock& lock);
  bool make_clean_room(const Pageable& wanted);

  // planned_moves.cpp
  Pageable* storage_at_rest(Lock& lock, Address at);
  void forget_copies(Pageable& storage);
  std::optional<Shortage> recompute(Lock& lock, Address at, StorageId id, bool at_fault);
  void recompute_all(Lock& lock);

  Store& store_;
  Tier* const spill_;
  const Settings settings_;

  mutable std::mutex lock_;
  std::condition_variable changed_;  // a move, a recomputation or a capture ended, or the background has work
  Pageables storages_;
  UseHistory history_;
  PagerCounts counts_;
  Bytes at_once_lately_;  // the most that had to be resident at once since take_at_once()
  OpId evicted_at_;       // the op at which something was last evicted
  // A copy that a plan ordered from the background thread.
  struct Order {
    Address at;
    StorageId id;
    bool read = false;  // false: write out
  };
  std::deque<Order> orders_;
  bool follows_plan_ = false;
  Recomputer* recomputer_ = nullptr;
  Bytes largest_;  // largest span of any storage so far
  std::optional<SpillSlot> reserve_;
  Bytes pinned_;     // spans of storages with pins
  Bytes sliceable_;  // of pinned_ and files_in_use_, what a smaller pool need not hold at once (OpInput)
  std::map<Address, FilePiece> files_;
  Bytes files_seen_;            // FilePages::all_there() when all mappings were last counted
  Bytes files_there_;           // sum of FilePiece::of_file (not of `there`)
  Bytes files_own_;             // sum of FilePiece::own()
  Bytes files_coming_;          // what ops in flight may read in of mapped files
  Bytes files_in_use_;          // what ops in flight read of them, in memory or not
  std::string spill_failure_;   // why the last write out failed; empty: it did not
  std::size_t moves_ = 0;       // in flight
  std::size_t recomputes_ = 0;  // in flight
  std::size_t staged_ = 0;      // storages with Pageable::staged
  int captures_ = 0;            // in progress
  int starving_ = 0;            // threads that wait for a move to end, because nothing else can be evicted
  int fruitless_ = 0;           // faults in a row that lacked room, at storages that recent faults had brought back
  LastTries fruitless_tries_;   // the last tries for the fault at which fruitless_ passed its limit
  std::uint64_t rooms_wanted_at_faults_ = 0;  // how often a fault lacked room
  std::uint64_t next_id_ = 1;
  bool in_child_ = false;
  bool forked_ = false;
  // Bytes shared with forked children that were written or given up, in all.
  Bytes diverged_;
  std::atomic<std::uint64_t> shared_by_forks_{0};         // spans of storages with Pageable::shared
  std::unordered_set<std::uint64_t> written_since_fork_;  // addresses of storages that are not the pool's
  Bytes spilled_for_forks_;  // bytes spilled by before_fork() while nothing else was spilled
  Bytes childs_share_;       // in a forked child: most bytes that may be present when it reads a storage back
  std::atomic<bool> under_pressure_{false};
  std::atomic<std::uint64_t> waited_ns_{0};
};

}  // namespace ullage::store
