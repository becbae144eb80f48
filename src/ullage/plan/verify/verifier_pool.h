// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts, with the pool's own model, the resident bytes (pages and slabs) of what the verifier has present. A storage
// of the program keeps its address for life, unless it is too small to move. Each storage of Ullage's has an address of
// its own.

#include "ullage/plan/model/step.h"
#include "ullage/sim/pool_model.h"

#include <optional>
#include <span>
#include <vector>

namespace ullage::plan {

class VerifierPool final {
 public:
  explicit VerifierPool(const Step& step);

  // A storage of the program.
  void born(StorageIndex storage);
  void dies(StorageIndex storage);
  void give_up(StorageIndex storage);  // its pages go
  void take(StorageIndex storage);     // its pages come back

  // The same for the storage that Ullage made for a value.
  void make_own(ValueIndex value);
  void free_own(ValueIndex value);
  void give_up_own(ValueIndex value);
  void take_own(ValueIndex value);
  // From now on Ullage's storage of `from` holds `to`.
  void rename_own(ValueIndex from, ValueIndex to);
  // Moves the value's pages into the program's storage, which has none, and frees Ullage's storage.
  void hand_over(ValueIndex value);

  // Allocates all the blocks at once and frees them: scratch of an op, and what a recompute makes and does not keep.
  void pass_by(std::span<const Bytes> blocks);
  // The next step finds storages alive that it will free. Storages that this step made and that are alive at its end
  // take their places: by StepStorage::becomes, else matched by size. Allocates missing ones and frees the rest.
  void begin_next_step();

  Bytes resident_peak() const { return pool_.resident_peak(); }
  void restart_peak() { pool_.restart_peak(); }

 private:
  // One storage. If it is smaller than store::Store::kLeastRange, giving up its pages frees it.
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
