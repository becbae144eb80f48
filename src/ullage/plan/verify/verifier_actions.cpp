// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier_machine.h"

#include <algorithm>

namespace ullage::plan {

bool VerifierMachine::act(const Action& action) {
  const bool of_op = action.what == Action::What::Recompute || action.what == Action::What::BatchNorm;
  if (of_op ? !step_.ops.has(action.op) : !where_.has(action.value)) {
    return refuse(of_op ? "recompute of op " + std::to_string(action.op.value) + ", which the step does not have"
                        : "action on value " + std::to_string(action.value.value) + ", which the step does not have");
  }
  bool good = false;
  switch (action.what) {
    case Action::What::Drop:
      good = drop(action);
      break;
    case Action::What::Recompute:
    case Action::What::BatchNorm:
      good = recompute(action);
      break;
    case Action::What::Hold:
      good = hold(action);
      break;
    case Action::What::Spill:
    case Action::What::WriteAhead:
      good = spill(action);
      break;
    case Action::What::Restore:
    case Action::What::ReadAhead:
      good = restore(action);
      break;
  }
  if (good) note(level_);
  return good;
}

bool VerifierMachine::drop(const Action& action) {
  const ValueIndex value = action.value;
  const Where where = where_[value];
  const StorageIndex storage = step_.values[value].storage;
  Storage& of = storages_[storage];
  std::string what;
  if (where.home == Home::None) return refuse(action, "it is not there: it " + why_not(value));
  if (unfinished(value, what)) return refuse(action, "it" + what);
  if (where.home == Home::Program && of.alive && !step_.storages[storage].movable) {
    return refuse(action, "its storage lives and cannot be moved");
  }
  if (where.state != State::Out) level_ -= bytes_of(value);
  if (where.home == Home::Own) {
    pool_.free_own(value);
  } else if (!of.alive) {
    pool_.dies(storage);
  } else if (where.state != State::Out) {
    pool_.give_up(storage);
  }
  if (where.home == Home::Program) of.held = false;
  lose(value, Gone::Dropped);
  return true;
}

bool VerifierMachine::hold(const Action& action) {
  Storage& of = storages_[step_.values[action.value].storage];
  const Home home = where_[action.value].home;
  if (home == Home::None) return refuse(action, "it is not there: it " + why_not(action.value));
  if (home == Home::Own) return refuse(action, "it is in a storage of Ullage's own");
  if (!of.alive) return refuse(action, "its storage is dead");
  if (of.held) return refuse(action, "its storage is held already");
  of.held = true;
  return true;
}

// Also does WriteAhead.
bool VerifierMachine::spill(const Action& action) {
  const ValueIndex value = action.value;
  Where& where = where_[value];
  if (where.home == Home::None) return refuse(action, "it is not there: it " + why_not(value));
  const StorageIndex storage = step_.values[value].storage;
  if (!step_.storages[storage].movable) return refuse(action, "its storage cannot be moved");
  if (where.state == State::Coming) return refuse(action, "it is read ahead but not restored");
  const bool ahead = action.what == Action::What::WriteAhead;
  if (where.state == State::Out) return ahead ? refuse(action, "it is spilled already") : true;
  if (ahead && where.writing) return refuse(action, "it is being written already");
  if (!where.copy && !where.writing) figures_.written += bytes_of(value);
  where.writing = ahead;
  if (ahead) return true;
  figures_.spills += 1;
  where.copy = true;
  where.state = State::Out;
  level_ -= bytes_of(value);
  where.home == Home::Own ? pool_.give_up_own(value) : pool_.give_up(storage);
  return true;
}

// Also does ReadAhead.
bool VerifierMachine::restore(const Action& action) {
  const ValueIndex value = action.value;
  Where& where = where_[value];
  const bool ahead = action.what == Action::What::ReadAhead;
  const bool coming = where.state == State::Coming;
  if (where.home == Home::None || where.state == State::There || (coming && ahead)) {
    return refuse(action, "it is not spilled: it " + why_not(value));
  }
  where.state = ahead ? State::Coming : State::There;
  if (coming) return true;
  figures_.restores += 1;
  figures_.read += bytes_of(value);
  level_ += bytes_of(value);
  where.home == Home::Own ? pool_.take_own(value) : pool_.take(step_.values[value].storage);
  return true;
}

// Also does BatchNorm.
bool VerifierMachine::recompute(const Action& action) {
  const bool batch_norm = action.what == Action::What::BatchNorm;
  const StepOp& op = step_.ops[action.op];
  const std::optional<Recompute>& way = batch_norm ? op.batch_norm : op.recompute;
  if (!way) return refuse(action, batch_norm ? "it has no batch-norm" : "it cannot be run again");
  if (action.op > at_ || (action.op == at_ && !ran_)) return refuse(action, "it has not run yet");
  if (!may_keep(action) || !has_what_it_reads(action, *way)) return false;

  note(level_ + way->rise);
  figures_.recomputes.count += way->took.count;
  figures_.recomputed_ops += 1;
  figures_.kept += action.keeps.size();
  Bytes made;
  std::vector<Bytes> passing;
  std::vector<ValueIndex> kept;
  for (std::size_t i = 0; i < (batch_norm ? 1 : op.makes.size()); ++i) {
    const ValueIndex value = op.makes[i];
    if (const auto before = overwritten(op, i)) {
      recompute_in_place(action, *before, value);
      continue;
    }
    made += bytes_of(value);
    if (std::find(action.keeps.begin(), action.keeps.end(), value) == action.keeps.end()) {
      passing.push_back(bytes_of(value));
    } else {
      pool_.make_own(value);
      kept.push_back(value);
    }
  }
  passing.push_back(saturating_sub(way->rise, made));
  pool_.pass_by(passing);
  for (const ValueIndex value : kept) {
    level_ += bytes_of(value);
    put(value);
  }
  return true;
}

std::optional<ValueIndex> VerifierMachine::overwritten(const StepOp& op, std::size_t made) const {
  if (made >= op.overwrites) return std::nullopt;
  const StorageIndex storage = step_.values[op.makes[made]].storage;
  for (const ValueIndex value : op.reads) {
    if (step_.values[value].storage == storage) return value;
  }
  ULLAGE_CHECK(false, "an op overwrites what it does not receive");
  return std::nullopt;
}

bool VerifierMachine::may_keep(const Action& action) {
  const StepOp& op = step_.ops[action.op];
  const bool batch_norm = action.what == Action::What::BatchNorm;
  const auto last = op.makes.begin() + static_cast<std::ptrdiff_t>(batch_norm ? 1 : op.makes.size());
  for (auto kept = action.keeps.begin(); kept != action.keeps.end(); ++kept) {
    if (std::find(op.makes.begin(), last, *kept) == last) {
      return refuse(action, "it does not make " + text(*kept) + ", which is to be kept");
    }
    if (std::find(action.keeps.begin(), kept, *kept) != kept)
      return refuse(action, "it keeps " + text(*kept) + " twice");
    if (where_[*kept].home != Home::None) {
      return refuse(action, "it keeps " + text(*kept) + ", which " + why_not(*kept) + " already");
    }
  }
  return true;
}

bool VerifierMachine::has_what_it_reads(const Action& action, const Recompute& way) {
  const StepOp& op = step_.ops[action.op];
  for (std::size_t i = 0; action.what == Action::What::Recompute && i < op.overwrites; ++i) {
    const ValueIndex before = overwritten(op, i).value();
    const Where& where = where_[before];
    const std::string would = "it would write over " + text(before) + ", which ";
    if (where.home != Home::Own) return refuse(action, would + "is in no storage of Ullage's: it " + why_not(before));
    if (where.state != State::There) return refuse(action, would + why_not(before));
    if (where.writing) return refuse(action, would + "is being written ahead");
  }
  for (const ValueIndex value : way.reads) {
    const Where& where = where_[value];
    if (where.home == Home::None || where.state != State::There) {
      return refuse(action, "it reads " + text(value) + ", which " + why_not(value));
    }
  }
  return true;
}

void VerifierMachine::recompute_in_place(const Action& action, ValueIndex before, ValueIndex made) {
  lose(before, Gone::Recomputed);
  if (std::find(action.keeps.begin(), action.keeps.end(), made) == action.keeps.end()) {
    level_ -= bytes_of(before);
    pool_.free_own(before);
    return;
  }
  pool_.rename_own(before, made);
  put(made);
}

// Moves the pages of a recomputed value into the program's storage, if that is alive and this is its newest value.
void VerifierMachine::put(ValueIndex made) {
  const Storage& of = storages_[step_.values[made].storage];
  const bool back = of.alive && of.newest == made;
  where_[made] = Where{back ? Home::Program : Home::Own};
  if (back) pool_.hand_over(made);
}

}  // namespace ullage::plan
