// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier_machine.h"

#include <algorithm>
#include <array>

namespace ullage::plan {

VerifierMachine::VerifierMachine(const Step& step)
    : step_(step),
      first_(step.storages.size()),
      where_(step.values.size()),
      storages_(step.storages.size()),
      pool_(step),
      away_(step.storages.size()) {
  check_step();
  for (const ValueIndex value : step.values.ids()) {
    if (step.values[value].maker != kNone) continue;
    auto& first = first_[step.values[value].storage];
    ULLAGE_CHECK(!first, "a storage with two values that no op made");
    first = value;
  }
}

void VerifierMachine::check_step() const {
  ULLAGE_CHECK(step_.gaps.size() == step_.ops.size() + 1, "a step with no gap before an op or after the last");
  const auto known = [&](const std::vector<ValueIndex>& values) {
    return std::all_of(values.begin(), values.end(), [&](ValueIndex value) { return where_.has(value); });
  };
  for (const StepOp& op : step_.ops) {
    ULLAGE_CHECK(known(op.reads) && known(op.makes), "an op of values that the step does not have");
    ULLAGE_CHECK(!op.recompute || known(op.recompute->reads), "a recompute of values that the step does not have");
    ULLAGE_CHECK(!op.batch_norm || (known(op.batch_norm->reads) && op.overwrites == 0 && !op.makes.empty()),
                 "a batch-norm of values that the step does not have, or of an op in place");
    ULLAGE_CHECK(op.overwrites <= op.makes.size(), "an op overwrites more than it makes");
  }
}

Bytes VerifierMachine::bytes_of(ValueIndex value) const { return step_.storages[step_.values[value].storage].bytes; }

void VerifierMachine::note(Bytes level) {
  if (!in_gap_ && step_.ops.has(at_)) {
    Bytes& most = figures_.levels[at_];
    most = std::max(most, level);
  }
  if (level <= figures_.peak && figures_.peak_at != kNone) return;
  figures_.peak = level;
  figures_.peak_at = std::min(at_, step_.ops.empty() ? OpIndex{0} : step_.ops.next_id().previous());
}

bool VerifierMachine::begin_step(const std::vector<ValueIndex>& away) {
  at_ = OpIndex{0}, in_gap_ = true, ran_ = false;
  Verified figures;
  figures.peak = figures_.peak;
  figures.peak_at = begun_ ? figures_.peak_at : kNone;
  figures.levels.assign(step_.ops.size(), Bytes{});
  figures_ = figures;
  // Storages that live on from the step before stay where they are. Everything else is reset.
  Table<ValueIndex, Where> were = std::move(where_);
  Table<StorageIndex, Storage> had = std::move(storages_);
  where_.assign(step_.values.size(), {});
  storages_.assign(step_.storages.size(), {});
  level_ = step_.level;
  for (const StorageIndex i : storages_.ids()) {
    if (!step_.storages[i].from_before) continue;
    storages_[i] = {true, false, first_[i]};
    if (!first_[i]) continue;
    Where& where = where_[*first_[i]];
    where = Where{Home::Program};
    const StorageIndex was = step_.in_last_step(i);
    if (!begun_ || was == kNone) continue;
    where.state = were[*had[was].newest].state;
    where.copy = were[*had[was].newest].copy;
    if (where.state == State::Out) level_ -= step_.storages[i].bytes;
  }
  if (begun_) pool_.begin_next_step();
  if (!begun_ && !send_away(away)) return false;
  begun_ = true;
  pool_.restart_peak();
  note(level_);
  return true;
}

bool VerifierMachine::send_away(const std::vector<ValueIndex>& away) {
  for (const ValueIndex value : away) {
    if (!where_.has(value)) return refuse("away: there is no value " + std::to_string(value.value));
    const StorageIndex storage = step_.values[value].storage;
    const StorageIndex found = step_.in_next_step(storage);
    if (found == kNone) return refuse("away: " + text(value) + " does not live from step to step");
    if (!step_.storages[storage].movable || !step_.storages[found].movable)
      return refuse("away: " + text(value) + " is of a storage that cannot be moved");
    if (away_[storage]) return refuse("away: " + text(value) + " is of a storage that is away already");
    if (!first_[found]) return refuse("away: " + text(value) + " is of a storage with no value to begin with");
    away_[storage] = true;
    Where& where = where_[*first_[found]];
    where.state = State::Out, where.copy = true;
    level_ -= step_.storages[found].bytes;
    pool_.give_up(found);
  }
  return true;
}

void VerifierMachine::born(StorageIndex storage, std::optional<ValueIndex> value) {
  ULLAGE_CHECK(!storages_[storage].alive, "a storage that is alive is born");
  storages_[storage] = {true, false, value};
  if (value) where_[*value] = Where{Home::Program};
  level_ += step_.storages[storage].bytes;
  pool_.born(storage);
}

void VerifierMachine::lose(ValueIndex value, Gone gone) {
  where_[value] = Where{Home::None, State::There, false, false, gone, at_};
}

// Is it being written or read ahead? Then `what` has the reason, for a message.
bool VerifierMachine::unfinished(ValueIndex value, std::string& what) const {
  const Where& where = where_[value];
  if (where.writing) what = " is written ahead but not spilled";
  if (where.state == State::Coming) what = " is read ahead but not restored";
  return !what.empty();
}

// The program frees a storage. It may have looked at the newest value until now, so that must not have been dropped.
bool VerifierMachine::dies(StorageIndex storage) {
  Storage& gone = storages_[storage];
  ULLAGE_CHECK(gone.alive, "a storage dies that is not alive");
  gone.alive = false;
  if (gone.held) return true;
  bool there = true;
  if (gone.newest) {
    const Where& where = where_[*gone.newest];
    std::string what;
    if (unfinished(*gone.newest, what)) return refuse(text(*gone.newest) + what + " when its storage dies");
    if (where.home == Home::None && where.gone == Gone::Dropped) {
      return refuse(text(*gone.newest) + " is dropped at " + text(where.gone_at) +
                    " while its storage lives, and not made again: spill it");
    }
    there = where.home == Home::Program && where.state == State::There;
    if (where.home == Home::Program) lose(*gone.newest, Gone::Died);
  }
  if (there) level_ -= step_.storages[storage].bytes;
  pool_.dies(storage);
  return true;
}

bool VerifierMachine::pass_gap(GapIndex gap) {
  at_ = op_after(gap), in_gap_ = true, ran_ = false;
  for (const GapEvent& event : step_.gaps[gap]) {
    if (event.born) {
      born(event.storage, first_[event.storage]);
    } else if (!dies(event.storage)) {
      return false;
    }
    note(level_);
  }
  return true;
}

bool VerifierMachine::enter(OpIndex op) {
  at_ = op, in_gap_ = false, ran_ = false;
  note(level_);
  return true;
}

bool VerifierMachine::look_at_reads(OpIndex op) {
  const StepOp& it = step_.ops[op];
  for (std::size_t i = 0; i < it.reads.size(); ++i) {
    const ValueIndex value = it.reads[i];
    const StorageIndex storage = step_.values[value].storage;
    const Storage& of = storages_[storage];
    ULLAGE_CHECK(of.alive && of.newest == value, "an op reads what the program does not have");
    const auto begin = it.makes.begin();
    const bool written = std::any_of(begin, begin + static_cast<std::ptrdiff_t>(it.overwrites),
                                     [&](ValueIndex made) { return step_.values[made].storage == storage; });
    const bool unread = std::find(it.unread.begin(), it.unread.end(), i) != it.unread.end();
    if (unread && !written) continue;
    const Where& where = where_[value];
    if (where.home != Home::Program || where.state != State::There) {
      return refuse("reads " + text(value) + ", which " + why_not(value));
    }
    if (written && where.writing) return refuse("writes over " + text(value) + ", which is being written ahead");
  }
  return true;
}

bool VerifierMachine::run(OpIndex op) {
  if (!look_at_reads(op)) return false;
  const StepOp& it = step_.ops[op];
  note(level_ + it.rise);
  Bytes made;
  for (std::size_t i = 0; i < it.makes.size(); ++i) {
    const StorageIndex storage = step_.values[it.makes[i]].storage;
    if (i < it.overwrites) {
      Storage& of = storages_[storage];
      lose(of.newest.value(), Gone::Overwritten);
      of.newest = it.makes[i];
      where_[it.makes[i]] = Where{Home::Program};
    } else {
      born(storage, it.makes[i]);
      made += step_.storages[storage].bytes;
    }
  }
  for (const StorageIndex storage : it.hides) {
    born(storage, first_[storage]);
    made += step_.storages[storage].bytes;
  }
  pool_.pass_by(std::array{saturating_sub(it.rise, made)});
  note(level_);
  ran_ = true;
  return true;
}

bool VerifierMachine::end_step() {
  at_ = step_.ops.next_id(), in_gap_ = true;
  for (const ValueIndex value : where_.ids()) {
    const StorageIndex storage = step_.values[value].storage;
    if (where_[value].home == Home::Own)
      return refuse(text(value) + " was made again and is not dropped when the step ends");
    if (storages_[storage].newest != value) continue;
    if (storages_[storage].held) return refuse(text(value) + " is held and not dropped when the step ends");
    std::string what;
    if (unfinished(value, what)) return refuse(text(value) + what + " when the step ends");
    ULLAGE_CHECK(storages_[storage].alive == step_.storages[storage].outlives,
                 "a storage that outlives the step and dies, or neither");
    if (!step_.storages[storage].outlives) continue;
    const bool there = where_[value].home == Home::Program && where_[value].state == State::There;
    const bool out = where_[value].home == Home::Program && where_[value].state == State::Out;
    if (away_[storage] && !out) return refuse(text(value) + " is to be away when the step ends, but " + why_not(value));
    if (!away_[storage] && !there) return refuse(text(value) + " outlives the step, but " + why_not(value));
  }
  figures_.resident = pool_.resident_peak();
  return true;
}

}  // namespace ullage::plan
