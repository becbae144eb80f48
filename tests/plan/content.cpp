// SPDX-License-Identifier: Apache-2.0
#include "plan/content.h"

#include <algorithm>
#include <tuple>

namespace ullage::plan::test {
namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdull;
  return a ^ (a >> 32);
}

std::string text(const char* what, std::uint64_t index) { return what + std::to_string(index); }

}  // namespace

Content::Content(const Step& step) : step_(step), storages_(step.storages.size()), away_(step.storages.size()) {
  others_ = step.level;
  for (const StepStorage& storage : step.storages) {
    if (storage.from_before) others_ -= storage.bytes;
  }
}

void Content::say_wrong(const std::string& what) {
  if (fine()) why_ = what;
  wrong_ = true;
}
void Content::say_unruly(const std::string& what) {
  if (fine()) why_ = what;
  unruly_ = true;
}

Bytes Content::present() const {
  Bytes sum = others_;
  for (const StorageIndex i : storages_.ids()) {
    if (storages_[i].slot.pages || storages_[i].slot.coming) sum += step_.storages[i].bytes;
  }
  for (const auto& own : own_) {
    if (own.second.pages || own.second.coming) {
      sum += step_.storages[step_.values[own.first].storage].bytes;
    }
  }
  return sum;
}

void Content::note(Bytes more) { peak_ = std::max(peak_, present() + more); }

std::optional<ValueIndex> Content::first_of(StorageIndex storage) const {
  for (const ValueIndex i : step_.values.ids()) {
    if (step_.values[i].storage == storage && step_.values[i].maker == kNone) return i;
  }
  return std::nullopt;
}

// Returns the values that determine an op's results. A batch norm also gets statistics that do not affect its results.
std::vector<ValueIndex> Content::deciding(const StepOp& op) const {
  return op.recompute ? op.recompute->reads : inputs_of(op);
}

std::vector<ValueIndex> Content::inputs_of(const StepOp& op) const {
  std::vector<ValueIndex> inputs;
  for (std::size_t i = 0; i < op.reads.size(); ++i) {
    if (std::find(op.unread.begin(), op.unread.end(), i) == op.unread.end()) inputs.push_back(op.reads[i]);
  }
  return inputs;
}

Content::Slot* Content::slot_of(ValueIndex value) {
  const auto own = own_.find(value);
  if (own != own_.end()) return &own->second;
  Storage& storage = storage_of(value);
  const bool lives = storage.alive || storage.held;
  return lives && storage.newest == value ? &storage.slot : nullptr;
}

bool Content::there(ValueIndex value) const {
  const Slot* slot = slot_of(value);
  return slot != nullptr && slot->pages;
}
bool Content::out(ValueIndex value) const {
  const Slot* slot = slot_of(value);
  return slot != nullptr && slot->out;
}
bool Content::held(ValueIndex value) const { return storage_of(value).held && storage_of(value).newest == value; }

const std::map<ValueIndex, bool> Content::all_there() const {
  std::map<ValueIndex, bool> all;
  for (const Storage& storage : storages_) {
    if (storage.newest && there(*storage.newest)) all[*storage.newest] = false;
  }
  for (const auto& own : own_) {
    if (own.second.pages) all[own.first] = true;
  }
  return all;
}

// Returns the contents of each value in plain execution of this step. A storage that lives on from the last step begins
// with what that left in it.
Table<ValueIndex, Content::Hash> Content::plain() const {
  Table<ValueIndex, Hash> right(step_.values.size());
  Table<StorageIndex, std::optional<ValueIndex>> last(step_.storages.size());
  for (const ValueIndex i : step_.values.ids()) last[step_.values[i].storage] = i;
  for (const ValueIndex i : step_.values.ids()) {
    const StorageIndex was = step_.in_last_step(step_.values[i].storage);
    const bool carried = steps_ > 0 && was != kNone && step_.values[i].maker == kNone;
    right[i] = carried ? right_[*last[was]] : mixed(mixed(1, steps_), i.value);
  }
  for (const OpIndex k : step_.ops.ids()) {
    Hash hash = mixed(2, k.value);
    for (const ValueIndex value : deciding(step_.ops[k])) hash = mixed(hash, right[value]);
    for (std::size_t i = 0; i < step_.ops[k].makes.size(); ++i) right[step_.ops[k].makes[i]] = mixed(hash, i);
  }
  return right;
}

void Content::begin_step(const std::vector<ValueIndex>& away) {
  right_ = plain();
  const Table<StorageIndex, Storage> were = storages_;
  for (const StorageIndex i : storages_.ids()) {
    const auto first = first_of(i);
    const bool from_before = step_.storages[i].from_before;
    const StorageIndex was = step_.in_last_step(i);
    if (from_before && steps_ > 0 && was != kNone) {
      storages_[i] = were[was];
      storages_[i].newest = first;
    } else if (from_before) {
      born(i, first, first ? right_[*first] : 0);
    } else {
      storages_[i] = {};
    }
  }
  at_ = OpIndex{0}, ran_ = false;
  if (steps_++ == 0) send_away(away);
  note();
}

void Content::send_away(const std::vector<ValueIndex>& away) {
  for (const ValueIndex value : away) {
    if (!right_.has(value)) return say_unruly("away: no value");
    const StorageIndex storage = step_.values[value].storage;
    const StorageIndex found = step_.in_next_step(storage);
    if (found == kNone || !step_.storages[found].movable || away_[storage] || !first_of(found)) {
      return say_unruly("away: a storage that cannot be");
    }
    Slot& slot = storages_[found].slot;
    away_[storage] = true;
    slot.file = slot.pages;
    slot.pages.reset();
    slot.out = true;
  }
}

void Content::born(StorageIndex storage, std::optional<ValueIndex> value, Hash hash) {
  Storage& it = storages_[storage];
  it = {};
  it.alive = true;
  it.newest = value;
  it.slot.pages = hash;
}

void Content::gap(GapIndex index) {
  at_ = op_after(index), ran_ = false;
  for (const GapEvent& event : step_.gaps[index]) {
    Storage& storage = storages_[event.storage];
    if (event.born) {
      const auto first = first_of(event.storage);
      born(event.storage, first, first ? right_[*first] : 0);
    } else if (storage.held) {
      storage.alive = false;
    } else {
      if (storage.slot.busy()) say_unruly("a storage dies while it is copied");
      if (storage.dropped) say_unruly("a drop for good");
      const auto newest = storage.newest;
      storage = {};
      storage.newest = newest;
    }
    note();
  }
}

Content::Hash Content::read(ValueIndex value, const std::string& who) {
  // Reads what is really there, right or wrong: Ullage's own storage for the value if there is one, else the program's.
  const auto own = own_.find(value);
  const Slot& slot = own != own_.end() ? own->second : storage_of(value).slot;
  if (!slot.pages) {
    say_wrong(who + text(" reads what is not there: value ", value.value));
    return 0;
  }
  if (*slot.pages != right_[value]) say_wrong(who + text(" reads the wrong bytes of value ", value.value));
  return *slot.pages;
}

void Content::run(OpIndex op) {
  const StepOp& it = step_.ops[op];
  const std::string who = text("op ", op.value);
  at_ = op;
  Hash hash = mixed(2, op.value);
  for (const ValueIndex value : inputs_of(it)) (void)read(value, who);
  for (const ValueIndex value : deciding(it)) hash = mixed(hash, read(value, who));
  note(it.rise);
  for (std::size_t i = 0; i < it.makes.size(); ++i) {
    const StorageIndex storage = step_.values[it.makes[i]].storage;
    if (i >= it.overwrites) {
      born(storage, it.makes[i], mixed(hash, i));
      continue;
    }
    Storage& of = storages_[storage];
    if (!of.slot.pages) say_wrong(who + " writes where no bytes are");
    if (of.slot.busy()) say_unruly(who + " writes over what is copied");
    of.slot = Slot{mixed(hash, i), {}, false, false, false};
    of.newest = it.makes[i];
  }
  for (const StorageIndex storage : it.hides) {
    const auto first = first_of(storage);
    born(storage, first, first ? right_[*first] : 0);
  }
  note();
  ran_ = true;
}

void Content::act(const Action& action) {
  using What = Action::What;
  if (action.what == What::Recompute || action.what == What::BatchNorm) {
    recompute(action);
    return note();
  }
  if (!right_.has(action.value)) return say_unruly("no such value");
  Slot* slot = slot_of(action.value);
  const StepStorage& storage = step_.storages[step_.values[action.value].storage];
  const bool gone = slot == nullptr || (!slot->pages && !slot->out && !slot->coming);
  if (gone) return say_unruly("an action on what is not there");
  switch (action.what) {
    case What::Drop:
      drop(action.value);
      break;
    case What::Hold:
      if (own_.contains(action.value) || !storage_of(action.value).alive || storage_of(action.value).held) {
        return say_unruly("a hold of what is no living storage's, or held already");
      }
      storage_of(action.value).held = true;
      break;
    case What::Spill:
      if (slot->out) return;
      if (!storage.movable || slot->coming) return say_unruly("a spill of what cannot be");
      slot->file = slot->pages;
      slot->pages.reset();
      slot->out = true, slot->writing = false;
      break;
    case What::WriteAhead:
      if (!storage.movable || slot->out || slot->busy()) return say_unruly("a write ahead of what cannot be");
      slot->file = slot->pages;
      slot->writing = true;
      break;
    case What::Restore:
      if (!slot->out && !slot->coming) return say_unruly("a restore of what is there");
      slot->pages = slot->file;
      slot->out = slot->coming = false;
      break;
    case What::ReadAhead:
      if (!slot->out) return say_unruly("a read ahead of what is there");
      slot->out = false, slot->coming = true;
      break;
    default:
      break;
  }
  note();
}

void Content::drop(ValueIndex value) {
  if (slot_of(value)->busy()) return say_unruly("a drop of what is copied");
  if (own_.erase(value) > 0) return;
  Storage& storage = storage_of(value);
  if (storage.alive && !step_.storages[step_.values[value].storage].movable) {
    return say_unruly("a drop of what cannot be moved");
  }
  storage.slot = {};
  storage.held = false;
  storage.dropped = storage.alive;
}

void Content::recompute(const Action& action) {
  const bool batch_norm = action.what == Action::What::BatchNorm;
  if (!step_.ops.has(action.op)) return say_unruly("no such op");
  const StepOp& op = step_.ops[action.op];
  const auto& way = batch_norm ? op.batch_norm : op.recompute;
  if (!way) return say_unruly("no way to run it again");
  if (action.op > at_ || (action.op == at_ && !ran_)) return say_unruly("run again before it ran");
  std::vector<ValueIndex> makes = op.makes;
  if (batch_norm) makes.resize(1);
  for (std::size_t i = 0; i < action.keeps.size(); ++i) {
    const ValueIndex kept = action.keeps[i];
    if (std::find(makes.begin(), makes.end(), kept) == makes.end()) return say_unruly("keeps what it does not make");
    if (std::count(action.keeps.begin(), action.keeps.end(), kept) > 1) return say_unruly("keeps it twice");
    const Slot* slot = slot_of(kept);
    if (slot != nullptr && (slot->pages || slot->out || slot->coming)) return say_unruly("keeps what is there");
  }
  Hash hash = mixed(2, action.op.value);
  const std::string who = text("recompute of op ", action.op.value);
  bool right = true;
  for (const ValueIndex value : way->reads) {
    const Hash found = read(value, who);
    right = right && found == right_[value];
    hash = mixed(hash, found);
  }
  note(way->rise);
  for (std::size_t i = 0; i < makes.size(); ++i) {
    // The batch norm's recompute uses another formula, which gives the plain result if all it reads is right.
    const Hash made = batch_norm ? (right ? right_[makes[i]] : mixed(3, hash)) : mixed(hash, i);
    const bool kept = std::find(action.keeps.begin(), action.keeps.end(), makes[i]) != action.keeps.end();
    if (i < op.overwrites) {
      for (const ValueIndex before : op.reads) {
        const bool same = step_.values[before].storage == step_.values[makes[i]].storage;
        if (same) make_in_place(action, before, makes[i], made);
      }
    } else if (kept) {
      Storage& home = storage_of(makes[i]);
      put(home, makes[i], made);
    }
  }
}

void Content::make_in_place(const Action& action, ValueIndex before, ValueIndex made, Hash hash) {
  Storage& home = storage_of(made);
  const auto own = own_.find(before);
  if (own == own_.end()) {  // the recompute would write over the program's own bytes
    home.slot.pages = hash;
    return say_unruly("runs in place upon the program's storage");
  }
  if (own->second.busy() || !own->second.pages) say_unruly("runs in place upon what is away or copied");
  own_.erase(own);
  if (std::find(action.keeps.begin(), action.keeps.end(), made) == action.keeps.end()) return;
  put(home, made, hash);
}

void Content::put(Storage& home, ValueIndex made, Hash hash) {
  const bool back = home.alive && home.newest == made;
  (back ? home.slot : own_[made]).pages = hash;
  if (back) home.dropped = false;
}

void Content::end_step() {
  if (!own_.empty()) say_unruly("something recomputed is left at the end");
  for (const StorageIndex i : storages_.ids()) {
    const Storage& storage = storages_[i];
    if (storage.held) say_unruly("something held is left at the end");
    if (!step_.storages[i].outlives) continue;
    if (storage.slot.busy()) say_unruly("a copy is not ended at the end");
    const std::optional<Hash>& is = away_[i] ? storage.slot.file : storage.slot.pages;
    if (away_[i] != storage.slot.out || !is) say_unruly("a storage does not end as the next step begins");
    if (is && storage.newest && *is != right_[*storage.newest]) say_wrong("a storage ends with the wrong bytes");
  }
}

void Content::carry_out(const Schedule& schedule) {
  const Action* last = nullptr;
  for (const Action& action : schedule.actions) {
    if (!step_.ops.has(action.at)) return say_unruly("an action nowhere");
    if (last != nullptr && std::tie(action.at, action.after) < std::tie(last->at, last->after)) {
      return say_unruly("an action out of order");
    }
    last = &action;
  }
  for (int step = 0; step < 2; ++step) {
    begin_step(schedule.away);
    std::size_t next = 0;
    const auto act_all = [&](OpIndex op, bool after) {
      for (; next < schedule.actions.size(); ++next) {
        const Action& action = schedule.actions[next];
        if (action.at != op || action.after != after || !fine()) return;
        act(action);
      }
    };
    for (const OpIndex i : step_.ops.ids()) {
      if (!fine()) break;
      gap(gap_before(i));
      act_all(i, false);
      run(i);
      act_all(i, true);
    }
    gap(gap_before(step_.ops.next_id()));
    if (fine()) end_step();
    if (!fine()) return;
  }
}

}  // namespace ullage::plan::test
