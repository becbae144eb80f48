// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a program fit into fewer bytes than it needs: when the store has no room, storages that are needed last are
// written out and their pages handed on; what an op reads is brought back before it runs; what anyone touches
// unannounced is brought back by the fault it causes. Addresses never change, so no pointer dangles.
//
//   allocate -> store refuses -> make_room: the farthest storage -> write_out -> vacate -> the store serves
//   begin_op -> bring_back each input: stage pages, read, settle; pinned until end_op
//
// A thread in the background writes ahead what will be evicted next and brings back ahead what is due next, so that the
// program seldom waits. A plan says itself what leaves and comes back, what is dropped and made again (pager_plan.cpp).
// One lock guards the state; it is not held during input and output, so whatever was looked at before is looked at
// again after.

#include "ullage/base/bytes.h"
#include "ullage/store/pageable.h"
#include "ullage/store/pager_counts.h"
#include "ullage/store/store.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <variant>

namespace ullage::store {

// Whoever knows how the bytes of a storage were made: the pager asks it when dropped ones are needed.
class Recomputer {
 public:
  virtual ~Recomputer() = default;
  // The storage at `at` is needed now and no plan has brought it back: by an op, by backward, or (`at_fault`) by an
  // instruction that stands at it. True: it is resident now, through Pager::adopt(). Called on the thread that needs
  // it, with no lock held; may use the pager, and other dropped storages, which are recomputed first. One thread at a
  // time for one storage. What it throws counts as false, and says why.
  virtual bool recompute(Address at, bool at_fault) = 0;
};

// What could not be had, and why no room was made for it.
struct Shortage {
  Refusal refusal;            // of the store; its `limit` and `needed` are those of the last try
  Bytes at_once;              // what ops in flight need at once, the request included, and what cannot move: no smaller
                              // pool would do
  Bytes pinned;               // of that, the storages of ops in flight
  bool can_move = false;      // false: there is no spill file, and nothing was moved
  std::string spill_failure;  // why bytes could not be moved; empty: there was nothing left to move
};

// A storage that an op is about to use.
struct OpInput {
  Address storage;  // where its bytes begin
  Bytes size;
  bool written = false;
};

class Pager final {
 public:
  struct Settings {
    bool heal_faults = true;  // false: an access that no op announced is a failure, as it is on a GPU
    // False: no fault tells that a page was written, as on a GPU, and an op may write what it says it reads. A copy in
    // the tier below is then kept beside the bytes only while autograd holds them, since it checks that they stay.
    bool notices_writes = true;
    // A library may take a block as a storage is taken, and use it where no op says so (cuBLAS's workspaces on a card).
    // True: a storage stays where it is until an op was told to have it.
    bool libraries_take_blocks = false;
    bool evict_all = false;  // stress: before every op, everything that no op in flight uses is evicted
    // Told of bytes that ops may have been given to a device to work on until now: when an op ends, what it used; when
    // a storage is freed. Called with the pager's lock held. Empty: ops have run when they end.
    std::function<void(Address, Bytes)> used;
    // Told of storages whose bytes leave, or come back. Called with the pager's lock held. Empty: a touch of what is
    // away is noticed.
    enum class Moved { Away, Back };
    std::function<void(Address, Moved)> moved;
    // Told of bytes that this process and its fork's children shared and no longer do: one has written them or given
    // them up, so that the other's are now more. Called with the pager's lock held. Empty: nobody counts them.
    std::function<void(Bytes)> diverged;
  };

  // `spill` null: nothing can be moved, and the pager only hands on what the store says. All must outlive the pager.
  Pager(Store& store, Tier* spill, Settings settings);

  // As the store's, with room made where it had none. A storage made inside an op is pinned until the op ends.
  std::variant<Address, Shortage> allocate(Bytes size);
  Bytes free(Address at);

  // An op starts on this thread: its inputs are brought back and pinned until end_op(). Ops nest. With a Shortage
  // nothing is pinned and the op must not run. `signature`: see UseHistory::add_op.
  std::optional<Shortage> begin_op(std::uint64_t signature, std::span<const OpInput> inputs);
  // `remember` false: an op that the program did not run itself; the history does not hear of it.
  // `made`: storages that it gave to the program, of which the pager may not have known.
  void end_op(bool remember = true, std::span<const Address> made = {});
  // Could all of these be resident at once?
  bool fits(std::span<const OpInput> inputs);

  // Autograd saved a storage, or let go of it; as often as it did.
  void saved(Address at);
  void released(Address at);

  // For a plan, which is carried out word for word. All of them take the begin of a storage.
  //
  // Gives up the bytes of a storage, resident or spilled: they can be made again. False, and nothing done: not there,
  // too small to have pages of its own, in use by an op, or dropped already.
  bool drop(Address at);
  // Writes out what changed since it came back, and gives its pages up. Waits until done. False: as drop(); or spilled
  // already; or it could not be written (PagerCounts::spill_failure).
  bool spill(Address at);
  // The background writes it when it can, and reads it into pages that are taken now, if there is room. spill() and
  // bring_back() wait for that, or do it themselves where it has not begun. Changes after write_ahead() make its copy
  // worthless, no more.
  void write_ahead(Address at);
  void read_ahead(Address at);
  // The pages of `from` (brought back, where it had to make room) go behind `at`, which was dropped or spilled and is
  // of the same size. `at` is resident then; `from` has nothing left and is to be freed. False, and nothing done: not
  // so.
  bool adopt(Address at, Address from);
  // Null: there is none (any more). Must outlive its use.
  void set_recomputer(Recomputer* recomputer);
  // True: the background moves only what it is told to.
  void follow_plan(bool on);
  // How many bytes asked for could be present at once: the limit less the most that slabs and the last pages of
  // storages wasted since they were watched.
  Bytes planned_room();
  void watch_waste() { store_.restart_present_peak(); }

  // Brings back the storage that begins or lies around `at`. Nothing to do where there is none.
  std::optional<Shortage> bring_back(Address at);

  // For the handler of SIGSEGV: an access to `at` was not allowed.
  enum class Fault { Healed, NotOurs, Failed };
  struct FaultAnswer {
    Fault what = Fault::NotOurs;
    std::string why;  // of Failed
    Bytes at_once;    // where room was lacking: what must be resident at once, as far as the faults tell; else zero
  };
  FaultAnswer on_fault(Address at);

  // Gives back idle pages, down to `headroom` below the limit, and evicts as long as the limit is passed: it may have
  // sunk. Returns the bytes of idle pages given back.
  Bytes trim(Bytes headroom = {});
  // Gives back what no storage has.
  Bytes drop_idle();
  // Evicts every storage that no op in flight uses. For tests.
  void evict_all();

  // The body of the background thread; never returns.
  void run_in_background();

  // Between the two a device's work is captured, to be run again later unseen by any op (a CUDA graph): nothing moves
  // meanwhile, and what ops use is never moved again. They nest.
  void begin_capture();
  void end_capture();

  // Is the pool near its limit? Then ops and saved tensors are worth following. Stays true once it is or is said to be.
  bool under_pressure() const { return under_pressure_.load(std::memory_order_relaxed); }

  void follow_from_now_on() { under_pressure_.store(true); }

  PagerCounts counts() const;
  const Store& store() const { return store_; }

  // Around fork(): recomputes what is dropped, evicts what there would be no room for twice, waits for moves in flight
  // and holds everything still. The child reads what is spilled, evicts only what need not be written, and writes and
  // drops nothing.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  using Lock = std::unique_lock<std::mutex>;
  // Whom room is made for. A new storage may be refused; an op's input should come back; a fault must be healed, at the
  // cost of pinned storages too, and only the last two may use the spill file's reserve.
  enum class For { New, Input, Fault };
  enum class Evicted { One, Waited, None };

  struct Held {
    Address at;
    StorageId id;
    bool written = false;  // by the op
  };
  struct Frame {
    std::uint64_t signature = 0;
    std::size_t first = 0;  // of its storages in ThreadOps::held
  };
  // The ops in flight of one thread, innermost last.
  struct ThreadOps {
    std::vector<Held> held;
    std::vector<Frame> frames;
  };
  static ThreadOps& ops_here();
  // Made when a program's thread is about to wait for moves: counts the time until its end as waited for.
  class Waiting {
   public:
    explicit Waiting(Pager& pager);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Pager& pager_;
    const std::uint64_t began_;
  };

  Pageable* find(Address at, StorageId id);
  Pageables::iterator around(Address at);
  void tell(Address at, Settings::Moved what) const {
    if (settings_.moved) settings_.moved(at, what);
  }
  void await_written(Lock& lock, Address at);
  void diverge(Pageable& storage);
  void diverge(Bytes bytes);
  std::optional<Shortage> make_room_or_recount(Lock& lock, const Refusal& refusal, For whom, int& recounts);
  void pin(Pageable& storage);
  void meet(Pageable& storage);
  void unpin(Pageable& storage);
  void close_frame(bool record);
  Bytes note_at_once(Bytes request);
  Bytes present() const;
  Shortage shortage(const Refusal& refusal);
  void note_pressure();
  FaultAnswer no_room_at_a_fault();

  // pager_moves.cpp. Those with a Lock may let go of it for a while; a Pageable* is then to be found again.
  std::optional<Shortage> bring_back(Lock& lock, Address at, StorageId id, For whom);
  std::optional<Shortage> read_in(Lock& lock, Address at, StorageId id, Address staged);
  Evicted make_room(Lock& lock, const Refusal& refusal, For whom);
  Evicted evict(Lock& lock, Address at, StorageId id, For whom);
  Status write_out(Lock& lock, Address at, StorageId id, For whom);
  Result<SpillSlot> take_slot(Bytes span, For whom);
  Result<SpillSlot> take_from_file(Bytes span);
  void give_up_reserve();
  Pageables::iterator farthest(For whom, bool clean_only);
  void make_writable(Address at, Pageable& storage);
  void take_pages(Address at, Pageable& storage);
  bool unstage_one();

  // pager_background.cpp
  bool carry_out_order(Lock& lock);
  bool bring_back_due(Lock& lock);
  bool write_farthest(Lock& lock);
  bool make_clean_room(const Pageable& wanted);

  // pager_plan.cpp
  Pageable* storage_at_rest(Lock& lock, Address at);
  void forget_copies(Pageable& storage);
  std::optional<Shortage> recompute(Lock& lock, Address at, StorageId id, bool at_fault);
  void recompute_all(Lock& lock);

  Store& store_;
  Tier* const spill_;
  const Settings settings_;

  mutable std::mutex lock_;
  std::condition_variable changed_;  // a move ended, or there is work for the background
  Pageables storages_;
  UseHistory history_;
  PagerCounts counts_;
  OpId evicted_at_;  // when something was evicted last
  // For the background, by a plan: copies to make, in this order.
  struct Order {
    Address at;
    StorageId id;
    bool read = false;  // else write
  };
  std::deque<Order> orders_;
  bool follows_plan_ = false;
  Recomputer* recomputer_ = nullptr;
  Bytes largest_;  // span of any storage so far
  std::optional<SpillSlot> reserve_;
  Bytes pinned_;                // spans of storages with pins
  std::string spill_failure_;   // why the last write out failed; empty: it did not
  std::size_t moves_ = 0;       // in flight
  std::size_t recomputes_ = 0;  // in flight
  std::size_t staged_ = 0;      // storages with pages to be read into
  int captures_ = 0;            // under way
  int starving_ = 0;            // threads of the program that found nothing to evict but what is being moved
  int fruitless_ = 0;           // evictions in a row of what a fault had only just brought back
  std::uint64_t next_id_ = 1;
  bool in_child_ = false;
  Bytes childs_share_;  // of a forked child: what it keeps present at most of what it can read again
  std::atomic<bool> under_pressure_{false};
  std::atomic<std::uint64_t> waited_ns_{0};
};

}  // namespace ullage::store
