// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pool's own model behind what the verifier has present: how many resident bytes do pages and slabs make of it?
// A storage of the program keeps its address for life; one of Ullage's stands by itself.

#include "ullage/plan/model/step.h"
#include "ullage/sim/pool_model.h"

#include <optional>
#include <span>
#include <vector>

namespace ullage::plan {

class VerifierPool final {
 public:
  explicit VerifierPool(const Step& step);

  // A storage of the program: born, with bytes; dead; its bytes go, and come again.
  void born(StorageIndex storage);
  void dies(StorageIndex storage);
  void give_up(StorageIndex storage);
  void take(StorageIndex storage);

  // The same of the storage that Ullage made for a value.
  void make_own(ValueIndex value);
  void free_own(ValueIndex value);
  void give_up_own(ValueIndex value);
  void take_own(ValueIndex value);
  // What Ullage's storage of `from` holds is `to` from now on.
  void rename_own(ValueIndex from, ValueIndex to);
  // Its bytes go behind the storage of the program, which has none; Ullage's is gone.
  void hand_over(ValueIndex value);

  // For a moment, all at once and beside what there is: the scratch of an op, and what is made and not kept.
  void pass_by(std::span<const Bytes> blocks);
  // What ended the step alive and not the next one's is taken for what the next finds: by its size, in order.
  void begin_next_step();

  Bytes resident_peak() const { return pool_.resident_peak(); }
  void restart_peak() { pool_.restart_peak(); }

 private:
  // One storage; smaller ones than a range of pages come and go whole.
  struct Slot {
    Bytes bytes;
    std::optional<Address> at;
  };
  void fill(Slot& slot);
  void empty(Slot& slot);
  void give_up(Slot& slot);
  void take(Slot& slot);
  Slot& slot(StorageIndex storage) { return programs_.at(storage); }
  Slot& slot(ValueIndex value) { return own_.at(value); }

  const Step& step_;
  sim::PoolModel pool_;
  Table<StorageIndex, Slot> programs_;
  Table<ValueIndex, Slot> own_;
};

}  // namespace ullage::plan
