// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a program fit into fewer bytes than it needs. If the store has no room, the storages that are needed last are
// evicted and their pages handed on. The inputs of an op are brought back before it runs. If anything else touches an
// evicted storage, the page fault brings it back (not on a card). Addresses never change, so no pointer dangles.
//
//   allocate -> store refuses -> make_room: the farthest storage -> write_out -> vacate -> the store serves
//   begin_op -> bring_back each input: stage pages, read, settle; pinned until end_op
//
// A background thread writes ahead what will be evicted next and reads ahead what is due next, so that the program
// seldom waits. Under a plan, the plan says what is spilled, restored, dropped and recomputed (planned_moves.h).
//
// Thread-safe. The implementation is in pager_core.h.

#include "ullage/base/bytes.h"
#include "ullage/store/file_pages.h"
#include "ullage/store/op_signature.h"
#include "ullage/store/pager_counts.h"
#include "ullage/store/planned_moves.h"
#include "ullage/store/store.h"
#include "ullage/store/tier.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ullage::store {

// A request that was not served, and why no room was made for it. If a storage could not be brought back for another
// reason than lack of room, only `refusal.requested` and `spill_failure` (the reason) are set.
struct Shortage {
  Refusal refusal;  // the store's; `limit` and `needed` are those of the last attempt
  // The request, pinned storages and slabs, less OpInput::sliceable, and what ops in flight read of mapped files: no
  // smaller pool would do.
  Bytes at_once;
  Bytes pinned;               // the pinned storages (those of ops in flight), sliceable ones too
  bool can_move = false;      // false: nothing could be spilled, for lack of a tier or in a forked child
  std::string spill_failure;  // why nothing could be spilled; empty: no write failed, but nothing was left to spill
};

// A storage that an op is about to use.
struct OpInput {
  Address storage;  // where its bytes begin; for begin_op() any address in it
  Bytes size;
  bool written = false;
  // A smaller pool would not hold this one together with the others. The op would then run in slices, and the largest
  // would not use it; or its bytes would be copied from the tier.
  bool sliceable = false;
  bool only_read = false;  // surely: the op announces all that it writes. Matters if Settings::notices_writes is false
  // Set if it lies in a mapped file (Settings::files) and the op may read only a part of it: at most so many bytes come
  // into memory. None: the op reads all of `size`.
  std::optional<Bytes> at_most = std::nullopt;
  // Set if it lies in a mapped file and the op could run in slices: the most that one slice reads of it.
  std::optional<Bytes> slice = std::nullopt;
};

class Pager {
 public:
  struct Settings {
    // False: an access that no op announced to an evicted storage is an error, as on a card.
    bool heal_faults = true;
    // False: no page fault tells of a write, as on a card, and an op may write to what it announces as read. Then an op
    // that uses a storage invalidates the storage's copy in the tier. The copy stays valid if the op surely only reads
    // (OpInput::only_read), or if autograd has saved the storage, because autograd checks that saved tensors do not
    // change.
    bool notices_writes = true;
    // True: libraries allocate blocks from the pager and use them outside of ops (cuBLAS's workspaces on a card). Then
    // a storage is not evicted before some op has used or made it.
    bool libraries_take_blocks = false;
    bool evict_all = false;  // stress: before every op, everything that no op in flight uses is evicted
    // Called for bytes that a device may still be working on. That is when an op ends, for each storage that it used,
    // and when a storage is freed. The pager's lock is held. Empty: the work of an op is done when the op ends.
    std::function<void(Address, Bytes)> used;
    // Called when the bytes of a storage leave or come back. The pager's lock is held. Empty: nobody needs to know,
    // because a touch of an evicted storage is noticed.
    enum class Moved { Away, Back };
    std::function<void(Address, Moved)> moved;
    // Called when this process writes or gives up `bytes` that it shared with its forked children. Until then a shared
    // page counts once for all of them, as this process's. From now on the children's copy counts too, as theirs.
    // That may lower the limit; the pager then evicts before the op writes. The pager's lock is held. Empty: nobody
    // counts them.
    std::function<void(Bytes)> diverged;
    // copying() is called before diverged(), if an op that begins will write the bytes; copied() when it has ended.
    std::function<void(Bytes)> copying, copied;
    // Called before diverged(), if the bytes are a storage's.
    std::function<void(Bytes)> left_to_children;
    // Called in a child made by fork when it first uses a storage of its parent's.
    std::function<void(Bytes)> used_inherited;
    // Called before a request is refused, to have a consumer outside the pool give up what it can do without. True: one
    // did, so there may be room now. `finally`: none did, and one more try follows, so what others have only announced
    // is to be forgotten (LastTries). Called on the requesting thread with no lock held. Empty: there is no such
    // consumer.
    std::function<bool(bool finally)> last_resort;
    // The longest time that a request waits for others that grow (Limit::others_grow()) before it is refused.
    std::chrono::milliseconds waits_for_others{30000};
    // The files that the program has mapped. Before an op reads pages of them that are not in memory, room is made for
    // these. Before a storage is evicted, pages of files are let go that no op in flight uses. Null: files are left
    // alone. It must outlive the pager.
    FilePages* files = nullptr;
    // Called when the bytes of mapped files that can be let go have changed. `there`: those in memory; `coming`: those
    // that ops in flight may read in. The limit must leave room for both. `own`: those that ops have written to, which
    // stay. `found`: how many of them were there before somebody counted. Set if `files` is. The pager's lock is held.
    std::function<void(Bytes there, Bytes coming, Bytes own, Bytes found)> in_files;
  };

  // `spill`: the tier to spill to. Null: nothing can be spilled, and the store's refusals are passed on. Both must
  // outlive the pager.
  static std::unique_ptr<Pager> create(Store& store, Tier* spill, Settings settings);
  virtual ~Pager() = default;

  // As Store::allocate(), but makes room if the store has none. A storage that is made inside an op is pinned until the
  // op ends.
  virtual std::variant<Address, Shortage> allocate(Bytes size) = 0;
  // As Store::free(). On a device without page faults it first waits until the storage is not being written out.
  virtual Bytes free(Address at) = 0;

  // Begins an op on this thread: brings its inputs back and pins them until end_op(). Ops nest. If it returns a
  // Shortage, the op's pins are gone, and the op must neither run nor be ended. `signature`: see op_signature.h.
  virtual std::optional<Shortage> begin_op(OpSignature signature, std::span<const OpInput> inputs) = 0;
  // Ends this thread's innermost op. `remember` false: the program did not run the op itself, so the history leaves it
  // out. `made`: the op's outputs, which count as made by an op from now on (Settings::libraries_take_blocks).
  virtual void end_op(bool remember = true, std::span<const Address> made = {}) = 0;
  // Can a list op run as a whole? Beside slabs and what is pinned already, there must be room for its other inputs, and
  // for as many bytes again for outputs and scratch. Inputs that are small or outside the pool count only once, for the
  // outputs.
  virtual bool fits(std::span<const OpInput> inputs) = 0;

  // For an op that copies all `size` bytes of the storage at `from` over those of another, at `into`. If there is no
  // room for both, spills `from` and reads its bytes from the tier into the pages of `into`.
  enum class Copy {
    NeedsBoth,     // nothing was done, and the op needs both storages at once
    CanDoWithout,  // nothing was done, and the op may run; a smaller pool would not hold `from` for it
    Done,          // the bytes are copied
  };
  virtual Copy copy_storage(Address into, Address from, Bytes size) = 0;

  // Autograd saved the storage, or released it. Call each as often as autograd does it.
  virtual void saved(Address at) = 0;
  virtual void released(Address at) = 0;

  // Brings back the storage that has `at` in its range, if there is one. `may_write`: what needs it is no op, and may
  // write to it.
  virtual std::optional<Shortage> bring_back(Address at, bool may_write = false) = 0;

  // For the SIGSEGV handler: an access to `at` was not allowed. Healed: the instruction can go on. NotOurs: the pager
  // is not the cause. Failed: the bytes cannot be brought back.
  enum class Fault { Healed, NotOurs, Failed };
  struct FaultAnswer {
    Fault what = Fault::NotOurs;
    std::string why;  // if Failed
    // If room was lacking: the bytes that the pool must hold at once. That is slabs and the storages that faulted
    // lately, which are assumed to be used together; or slabs and pinned storages, if these are more. Else zero.
    Bytes at_once;
  };
  virtual FaultAnswer on_fault(Address at) = 0;

  // Asks for the limit, which may have sunk. Gives idle pages back until resident bytes are `headroom` below it, as far
  // as there are idle pages. If live storages alone pass the limit, evicts until they do not. Returns the bytes given
  // back. Does nothing during a capture.
  virtual Bytes trim(Bytes headroom = {}) = 0;
  // As Store::missing().
  virtual Bytes missing() = 0;
  // Gives all idle pages back to the system and returns their bytes. Does nothing during a capture.
  virtual Bytes drop_idle() = 0;
  // Evicts every storage that no op in flight uses. For Settings::evict_all and tests. Does nothing during a capture.
  virtual void evict_all() = 0;

  // Does a mapped file lie at `at` (Settings::files)?
  virtual bool holds_file(Address at) const = 0;
  // Call it when part of a file, which FilePages no longer holds, has been unmapped. Not before: pages that are still
  // there would count as outside for good.
  virtual void file_unmapped(AddressRange range) = 0;

  // The body of the background thread; never returns.
  virtual void run_in_background() = 0;

  // Between these two a device's work is captured, to run again later without any op (a CUDA graph). Meanwhile nothing
  // moves, and storages that ops use are pinned for good. Captures nest. begin_capture() waits for moves in flight.
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;

  // Is the pool near its limit, so that ops and saved tensors are worth following? Once true, it stays true.
  // follow_from_now_on() makes it true.
  virtual bool under_pressure() const = 0;
  virtual void follow_from_now_on() = 0;

  // Returns the sizes of the storages that no op has used or made yet. They are libraries' and are never evicted
  // (Settings::libraries_take_blocks).
  virtual std::vector<Bytes> kept_for_libraries() = 0;

  // Returns the most bytes that had to be resident at once since the last call. These are pinned storages, slabs and
  // what ops in flight read of mapped files, or FaultAnswer::at_once. Not counted is what OpInput::sliceable marks. Nor
  // is a refused request, because the program may go on without it.
  virtual Bytes take_at_once() = 0;

  virtual PagerCounts counts() const = 0;
  virtual const Store& store() const = 0;

  // The moves that a plan may order.
  virtual PlannedMoves& planned() = 0;

  // To be called around fork(). The first recomputes what is dropped. It evicts until half of the limit is free,
  // because parent and child may each end up with a copy of all resident bytes. If the pager has ever spilled for
  // another reason than a fork, it evicts all that it can. It waits for moves in flight, and keeps the locks until
  // after the fork. The child can read what is spilled, but it only evicts clean storages and neither writes nor drops
  // any.
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;
  // The resident bytes that this process has had since before a fork and has not written since. Takes no lock.
  virtual Bytes shared_by_forks() const = 0;
  // What it could evict for other processes, if no op needs more at once than one has so far. Zero before
  // under_pressure(). Bytes that are shared by forks do not count, because the children would still hold them.
  virtual Bytes movable() = 0;
};

}  // namespace ullage::store
