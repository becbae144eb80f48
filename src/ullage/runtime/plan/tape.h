// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the values of the running step are, and the ops that made them, so that bytes can be given up and had again:
//
//   value  in the program's storage (its newest value), with pages or without: dropped, or spilled by the pager
//          in a storage of ours: held beyond the program's own free, or recomputed
//          nowhere: its maker is on tape
//
// One thread's ops; the pool tells from any thread when a storage is freed.

#include "ullage/runtime/ops/taped_op.h"
#include "ullage/runtime/plan/plan_program.h"
#include "ullage/runtime/pool/pool.h"

#include "ullage/store/pager.h"

#include <memory>
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

  // A step under this program begins: values that live from step to step are known from the one before, where that ran
  // to its end. Nothing may be dropped.
  void begin_step(std::shared_ptr<const PlanProgram> program, bool follows_one);

  // Op `at` of the step is about to run on these storages of the pool. False: they are not what the plan reads there.
  bool bind_inputs(plan::OpIndex at, std::span<const StorageUse> inputs);
  // Keeps the op on tape, where it may be of use.
  void capture(plan::OpIndex at, const OpCall& call, std::span<const StorageUse> inputs);
  // It ran. `inputs` as for bind_inputs(). False: it made something else than planned.
  bool bind_outputs(plan::OpIndex at, std::span<const StorageUse> inputs, std::span<const c10::IValue> outputs);

  // False: the plan cannot be followed any further. Throws c10::OutOfMemoryError where there is no room for a recompute
  // or a restore.
  bool carry_out(const plan::Action& action);

  // Makes again all that is dropped, and forgets everything: from here on nobody needs the tape. False: something could
  // not be made now; it stays on tape, with all that it is made from, and is made when it is asked for.
  bool hand_back();
  // While something stays: the program is about to write to the storage at `at` by an op that the plan does not know.
  // What is made from it is made now, if there is room; else it is lost.
  void overwritten(Address at);
  // Makes what the program's storage at `at` held again. False: it is not dropped, or cannot be made; why_not().
  bool recompute(Address at);
  // Of the last thing that could not be made.
  const std::string& why_not() const { return why_not_; }

  // For an op in flight that was said not to look at it and touches it all the same: bytes that mean nothing, until
  // take_blank_back(). False: it is not dropped, or there is no room.
  bool give_blank(Address at);
  void take_blank_back();

  // The program's storage is about to be freed. True, where it `may_stay`: the tape has taken it over, since something
  // dropped is made from it. A step that runs as planned never comes to that; one that keeps less does (evaluation).
  bool freed(Address at, bool may_stay);

  const TapeCounts& counts() const { return counts_; }

 private:
  struct Place {
    Address at;                                                       // of the program's storage; zero: it is gone
    Bytes size;                                                       // likewise
    c10::weak_intrusive_ptr<c10::StorageImpl> program{StoragePtr()};  // likewise
    bool newest = false;                                              // of that storage
    bool dropped = false;                                             // its pages were given up here
    StoragePtr ours;                                                  // held or recomputed

    bool in_program() const { return at != Address{} && newest; }
    bool present() const { return ours != nullptr || (in_program() && !dropped); }
  };

  Place& place(plan::ValueIndex value) { return places_[value]; }
  void bind(plan::ValueIndex value, const StorageUse& use);
  StoragePtr bytes_of(plan::ValueIndex value);
  void drop(plan::ValueIndex value, bool last);
  bool run_again(plan::OpIndex op, std::span<const plan::ValueIndex> keeps, bool batch_norm);
  std::vector<StoragePtr> run_pinned(plan::OpIndex op, std::span<const StoragePtr> inputs, bool batch_norm);
  bool put(plan::ValueIndex value, StoragePtr storage);
  bool ensure(plan::ValueIndex value, std::vector<plan::ValueIndex>& made);
  bool make_dropped();
  bool leads_to_dropped(plan::ValueIndex value) const;
  bool can_be_made(plan::ValueIndex value) const;
  bool cannot(std::string why);
  void hold_sources();
  void forget();

  store::Pager& pager_;
  Pool& pool_;
  std::shared_ptr<const PlanProgram> program_;  // of the step; null: none
  Table<plan::ValueIndex, Place> places_;
  std::unordered_map<std::uint64_t, plan::ValueIndex> newest_;  // by address: what the program's storage holds
  struct Taped {
    std::unique_ptr<TapedOp> op;
    std::vector<std::size_t> written;  // indices of inputs that it overwrites
  };
  Table<plan::OpIndex, Taped> taped_;
  std::vector<Address> blanks_;
  std::string why_not_;
  Bytes bytes_;
  TapeCounts counts_;
};

}  // namespace ullage::runtime
