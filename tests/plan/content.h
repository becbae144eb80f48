// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a schedule does to the bytes themselves: each storage holds a number that stands for its contents, worked out by
// each op from the numbers it finds in what it reads. So what is stale or missing shows itself where it is read. For
// tests, against the verifier; every count is taken anew from all there is.

#include "ullage/plan/model/schedule.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan::test {

class Content final {
 public:
  explicit Content(const Step& step);  // which must outlive it

  // In the order of the timeline.
  void begin_step(const std::vector<ValueIndex>& away);
  void gap(GapIndex index);
  void act(const Action& action);
  void run(OpIndex op);
  void end_step();
  // Two steps, one after the other.
  void carry_out(const Schedule& schedule);

  // An op or a recompute read what is not there, or not what plain execution would have read.
  bool wrong() const { return wrong_; }
  // An action that nobody can carry out, or a step that does not end as the next one begins.
  bool unruly() const { return unruly_; }
  bool fine() const { return !wrong_ && !unruly_; }
  const std::string& why() const { return why_; }  // of the first of them
  Bytes peak() const { return peak_; }
  Bytes present() const;  // now

  // Of a value now.
  bool there(ValueIndex value) const;
  bool out(ValueIndex value) const;
  bool own(ValueIndex value) const { return own_.contains(value); }
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
    bool dropped = false;  // while it lives, and not made again since
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
  Table<ValueIndex, Hash> right_;  // what plain execution has in it, in this step
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
