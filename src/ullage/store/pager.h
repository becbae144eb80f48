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
// program seldom waits. A plan says itself what leaves and comes back, what is dropped and made again
// (planned_moves.h). Thread-safe. pager_core.h is what does it.

#include "ullage/base/bytes.h"
#include "ullage/store/pager_counts.h"
#include "ullage/store/planned_moves.h"
#include "ullage/store/store.h"
#include "ullage/store/tier.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace ullage::store {

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

class Pager {
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
    // Asked before a request is refused: somebody beside the pool gives up what it can do without. True: it did, so
    // that there may be room now. Called on the thread that asks, with no lock held. Empty: there is nobody.
    std::function<bool()> last_resort;
  };

  // `spill` null: nothing can be moved, and the pager only hands on what the store says. Both must outlive the pager.
  static std::unique_ptr<Pager> create(Store& store, Tier* spill, Settings settings);
  virtual ~Pager() = default;

  // As the store's, with room made where it had none. A storage made inside an op is pinned until the op ends.
  virtual std::variant<Address, Shortage> allocate(Bytes size) = 0;
  virtual Bytes free(Address at) = 0;

  // An op starts on this thread: its inputs are brought back and pinned until end_op(). Ops nest. With a Shortage
  // nothing is pinned and the op must not run. `signature`: see UseHistory::add_op.
  virtual std::optional<Shortage> begin_op(std::uint64_t signature, std::span<const OpInput> inputs) = 0;
  // `remember` false: an op that the program did not run itself; the history does not hear of it.
  // `made`: storages that it gave to the program, of which the pager may not have known.
  virtual void end_op(bool remember = true, std::span<const Address> made = {}) = 0;
  // Could all of these be resident at once?
  virtual bool fits(std::span<const OpInput> inputs) = 0;

  // Autograd saved a storage, or let go of it; as often as it did.
  virtual void saved(Address at) = 0;
  virtual void released(Address at) = 0;

  // Brings back the storage that begins or lies around `at`. Nothing to do where there is none.
  virtual std::optional<Shortage> bring_back(Address at) = 0;

  // For the handler of SIGSEGV: an access to `at` was not allowed.
  enum class Fault { Healed, NotOurs, Failed };
  struct FaultAnswer {
    Fault what = Fault::NotOurs;
    std::string why;  // of Failed
    Bytes at_once;    // where room was lacking: what must be resident at once, as far as the faults tell; else zero
  };
  virtual FaultAnswer on_fault(Address at) = 0;

  // Gives back idle pages, down to `headroom` below the limit, and evicts as long as the limit is passed: it may have
  // sunk. Returns the bytes of idle pages given back.
  virtual Bytes trim(Bytes headroom = {}) = 0;
  // As Store::missing().
  virtual Bytes missing() = 0;
  // Gives back what no storage has.
  virtual Bytes drop_idle() = 0;
  // Evicts every storage that no op in flight uses. For tests.
  virtual void evict_all() = 0;

  // The body of the background thread; never returns.
  virtual void run_in_background() = 0;

  // Between the two a device's work is captured, to be run again later unseen by any op (a CUDA graph): nothing moves
  // meanwhile, and what ops use is never moved again. They nest.
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;

  // Is the pool near its limit? Then ops and saved tensors are worth following. Stays true once it is or is said to be.
  virtual bool under_pressure() const = 0;
  virtual void follow_from_now_on() = 0;

  // The most that ops needed at once since this was called last, what cannot move included.
  virtual Bytes take_at_once() = 0;

  virtual PagerCounts counts() const = 0;
  virtual const Store& store() const = 0;

  // For a plan.
  virtual PlannedMoves& planned() = 0;

  // Around fork(): recomputes what is dropped, evicts what there would be no room for twice, waits for moves in flight
  // and holds everything still. The child reads what is spilled, evicts only what need not be written, and writes and
  // drops nothing.
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;
};

}  // namespace ullage::store
