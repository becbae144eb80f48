// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a schedule does to the contents of storages. Each storage holds a hash that stands for its contents, and each op
// computes the hashes of its results from those that it reads. So stale or missing bytes show at the op that reads
// them. Tests compare it with the verifier; therefore it shares no code with it and sums all bytes anew each time.

#include "ullage/plan/model/schedule.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan::test {

class Content final {
 public:
  explicit Content(const Step& step);  // `step` must outlive it

  // Call these in the order of the timeline.
  void begin_step(const std::vector<ValueIndex>& away);
  void gap(GapIndex index);
  void act(const Action& action);
  void run(OpIndex op);
  void end_step();
  // Runs the schedule for two steps in a row.
  void carry_out(const Schedule& schedule);

  // An op or a recompute read bytes that are missing or differ from those of plain execution.
  bool wrong() const { return wrong_; }
  // An action was impossible, or a step did not end in the state in which the next one begins.
  bool unruly() const { return unruly_; }
  bool fine() const { return !wrong_ && !unruly_; }
  const std::string& why() const { return why_; }  // of the first problem
  Bytes peak() const { return peak_; }
  Bytes present() const;  // now

  // The state of a value now.
  bool there(ValueIndex value) const;                                // in memory
  bool out(ValueIndex value) const;                                  // only in the spill file
  bool own(ValueIndex value) const { return own_.contains(value); }  // recomputed into a storage of Ullage's
  bool held(ValueIndex value) const;
  bool alive(ValueIndex value) const { return storage_of(value).alive; }
  const std::map<ValueIndex, bool> all_there() const;  // true: in a storage of Ullage's

 private:
  using Hash = std::uint64_t;
  struct Slot {
    std::optional<Hash> pages;  // what is in memory
    std::optional<Hash> file;   // what was written
    bool out = false, coming = false, writing = false;
    bool busy() const { return coming || writing; }
  };
  struct Storage {
    Slot slot;
    bool alive = false, held = false;
    std::optional<ValueIndex> newest;
    bool dropped = false;  // while alive, and not recomputed since
  };

  void say_wrong(const std::string& what);
  void say_unruly(const std::string& what);
  const Storage& storage_of(ValueIndex value) const { return storages_[step_.values[value].storage]; }
  Storage& storage_of(ValueIndex value) { return storages_[step_.values[value].storage]; }
  Slot* slot_of(ValueIndex value);
  const Slot* slot_of(ValueIndex value) const { return const_cast<Content*>(this)->slot_of(value); }
  Table<ValueIndex, Hash> plain() const;
  void send_away(const std::vector<ValueIndex>& away);
  void born(StorageIndex storage, std::optional<ValueIndex> value, Hash hash);
  std::optional<ValueIndex> first_of(StorageIndex storage) const;
  std::vector<ValueIndex> inputs_of(const StepOp& op) const;
  std::vector<ValueIndex> deciding(const StepOp& op) const;
  Hash read(ValueIndex value, const std::string& who);
  void drop(ValueIndex value);
  void recompute(const Action& action);
  void put(Storage& home, ValueIndex made, Hash hash);
  void make_in_place(const Action& action, ValueIndex before, ValueIndex made, Hash hash);
  void note(Bytes more = {});

  const Step& step_;
  Table<StorageIndex, Storage> storages_;
  std::map<ValueIndex, Slot> own_;
  Table<ValueIndex, Hash> right_;  // the contents in plain execution of this step
  Table<StorageIndex, bool> away_;
  std::uint64_t steps_ = 0;
  OpIndex at_ = kNone;
  bool ran_ = false;
  bool wrong_ = false, unruly_ = false;
  std::string why_;
  Bytes peak_;
  Bytes others_;
};

}  // namespace ullage::plan::test
