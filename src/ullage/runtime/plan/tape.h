// SPDX-License-Identifier: Apache-2.0
#pragma once

// Knows where the values of the running step are, and keeps the ops that made them ("on tape"). So bytes can be dropped
// and recomputed. A value is in one of these places:
//
//   in the program's storage, as its newest value: with pages, or without (dropped here, or spilled by the pager)
//   in a storage of Ullage's: held after the program freed it, or recomputed
//   nowhere: the op that makes it is on tape
//
// The tape follows the ops of one thread. Not thread-safe: the follower calls it under its lock.

#include "ullage/runtime/ops/taped_op.h"
#include "ullage/runtime/plan/plan_program.h"
#include "ullage/runtime/pool/pool.h"

#include "ullage/store/pager.h"

#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ullage::runtime {

struct TapeCounts {
  std::uint64_t recomputed_ops = 0;  // planned or on demand
  Seconds recompute;
  std::uint64_t missed = 0;  // actions that could not be carried out
  Bytes peak;                // of the tape's own records
};

class Tape final {
 public:
  // All must outlive the tape.
  Tape(store::Pager& pager, Pool& pool) : pager_(pager), pool_(pool) {}

  // Begins a step under `program`. `follows_one`: the step before ran to its end, so that values that live from step to
  // step are known. Nothing may be dropped at this time.
  void begin_step(std::shared_ptr<const PlanProgram> program, bool follows_one);

  // Op `at` of the step is about to run on these storages of the pool. False: they are not what the plan reads there.
  bool bind_inputs(plan::OpIndex at, std::span<const StorageUse> inputs);
  // Does the storage at `at` hold a value from which the plan makes others again?
  bool runs_on(Address at) const;
  // Keeps the op on tape if the plan runs it again and TapedOp::capture() supports its arguments.
  void capture(plan::OpIndex at, const OpCall& call, std::span<const StorageUse> inputs);
  // The op has run. `inputs` as for bind_inputs(). False: it made something else than planned.
  bool bind_outputs(plan::OpIndex at, std::span<const StorageUse> inputs, std::span<const c10::IValue> outputs);

  // False: the plan cannot be followed any further. Throws c10::OutOfMemoryError if there is no room for a recompute or
  // a restore.
  bool carry_out(const plan::Action& action);

  // Recomputes everything dropped and forgets the step. False: something could not be made now. It stays on tape with
  // all that it is made from, and is recomputed when it is needed.
  bool hand_back();
  // After hand_back() returned false: the program is about to write to the storage at `at`, by an op outside the plan.
  // If the tape holds that storage, recomputes everything dropped first. Values that cannot be recomputed at that
  // moment are lost.
  void overwritten(Address at);
  // Recomputes the bytes of the program's storage at `at`. False: it is not dropped, or cannot be made (why_not()).
  // Throws c10::OutOfMemoryError if there is no room.
  bool recompute(Address at);
  // An op is about to write to a storage that is not the pool's. If something dropped is made from it, recomputes
  // everything dropped first. Ops of this step that read the storage until now are not run again.
  void overwritten_outside(const c10::StorageImpl* storage);
  // Says why the value that was requested last could not be made.
  const std::string& why_not() const { return why_not_; }

  // Call this for an op in flight that touches a dropped storage although it does not use its content. Gives the
  // storage at `at` arbitrary bytes until take_blank_back(). False: it is not dropped, or cannot take them. Throws
  // c10::OutOfMemoryError if there is no room.
  bool give_blank(Address at);
  void take_blank_back();

  // The program's storage is about to be freed. True: the tape keeps it, because something dropped is made from it and
  // it cannot be made again itself; only if it `may_stay`. This does not happen in a step that runs as planned, but it
  // does in one that keeps less (evaluation).
  bool freed(Address at, bool may_stay);

  const TapeCounts& counts() const { return counts_; }

 private:
  struct Place {
    Address at;                                                       // of the program's storage; zero: it is gone
    Bytes size;                                                       // of the program's storage
    c10::weak_intrusive_ptr<c10::StorageImpl> program{StoragePtr()};  // the program's storage
    bool newest = false;                                              // that storage still holds this value
    bool met = false;                                                 // an op of this step used it there
    bool dropped = false;                                             // the tape has dropped its bytes
    StoragePtr ours;                                                  // held or recomputed

    bool in_program() const { return at != Address{} && newest; }
    bool present() const { return ours != nullptr || (in_program() && !dropped); }
  };

  Place& place(plan::ValueIndex value) { return places_[value]; }
  void bind(plan::ValueIndex value, const StorageUse& use);
  void rebind(plan::ValueIndex value, const StorageUse& use);
  StoragePtr bytes_of(plan::ValueIndex value);
  void drop(plan::ValueIndex value, bool last);
  bool run_again(plan::OpIndex op, std::span<const plan::ValueIndex> keeps, bool batch_norm);
  std::vector<StoragePtr> run_pinned(plan::OpIndex op, std::span<const StoragePtr> inputs, bool batch_norm);
  bool put(plan::ValueIndex value, StoragePtr storage);
  bool ensure(plan::ValueIndex value, std::vector<plan::ValueIndex>& made);
  bool make_dropped();
  // `seen`: the values that were looked at already. Without them, a chain of residual blocks would be walked along each
  // of its paths.
  using Seen = std::set<plan::ValueIndex>;
  bool leads_to_dropped(plan::ValueIndex value, Seen& seen) const;
  bool leads_to_dropped(plan::OpIndex op, Seen& seen) const;
  bool can_be_made(plan::ValueIndex value, Seen& seen) const;
  bool cannot(std::string why);
  void hold_sources();
  void forget();

  store::Pager& pager_;
  Pool& pool_;
  std::shared_ptr<const PlanProgram> program_;  // of the step; null: no step is followed
  Table<plan::ValueIndex, Place> places_;
  std::unordered_map<std::uint64_t, plan::ValueIndex> newest_;  // by address: the value in the program's storage
  struct Taped {
    std::unique_ptr<TapedOp> op;
    std::vector<std::size_t> written;  // indices of inputs that it overwrites
    bool mapped_written = false;       // a mapped weight that it reads was written to since

    bool mapped_stand() const { return !mapped_written && op->mapped_stand(); }
  };
  Table<plan::OpIndex, Taped> taped_;
  std::unordered_map<const c10::StorageImpl*, std::vector<plan::OpIndex>> mapped_readers_;  // ops on tape
  std::vector<Address> blanks_;
  std::string why_not_;
  Bytes bytes_;
  TapeCounts counts_;
};

}  // namespace ullage::runtime
