// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier_machine.h"

namespace ullage::plan {

bool VerifierMachine::refuse(const std::string& message) {
  const bool at_end = !step_.ops.has(at_);
  refused_ = Error{Error::Kind::BadArgument, message, (in_gap_ && !at_end ? "before " : "") + text(at_)};
  return false;
}

bool VerifierMachine::refuse(const Action& action, const std::string& message) {
  return refuse(text(action) + ": " + message);
}

std::string VerifierMachine::text(OpIndex op) const {
  if (!step_.ops.has(op)) return "the end of the step";
  return "op " + std::to_string(op.value) + " (" + step_.ops[op].name + ")";
}

std::string VerifierMachine::text(ValueIndex value) const {
  if (!where_.has(value)) return "value " + std::to_string(value.value);
  const std::string& name = step_.storages[step_.values[value].storage].name;
  return "value " + std::to_string(value.value) + (name.empty() ? "" : " (" + name + ")");
}

std::string VerifierMachine::text(const Action& action) const {
  const std::string side = action.after ? " after it" : " before it";
  switch (action.what) {
    case Action::What::Drop:
      return "drop of " + text(action.value) + side;
    case Action::What::Recompute:
      return "recompute of " + text(action.op) + side;
    case Action::What::BatchNorm:
      return "batch-norm of " + text(action.op) + side;
    case Action::What::Hold:
      return "hold of " + text(action.value) + side;
    case Action::What::Spill:
      return "spill of " + text(action.value) + side;
    case Action::What::Restore:
      return "restore of " + text(action.value) + side;
    case Action::What::WriteAhead:
      return "write ahead of " + text(action.value) + side;
    case Action::What::ReadAhead:
      return "read ahead of " + text(action.value) + side;
  }
  return "action of no kind";
}

std::string VerifierMachine::why_not(ValueIndex value) const {
  const Where& where = where_[value];
  if (where.home != Home::None) {
    if (where.state == State::Out) return "is spilled";
    return where.state == State::Coming ? "is read ahead but not restored" : "is there";
  }
  const std::string at = " at " + text(where.gone_at);
  switch (where.gone) {
    case Gone::NotYet:
      return "is not made yet";
    case Gone::Overwritten:
      return "is stale: the program wrote over it" + at;
    case Gone::Died:
      return "died with its storage" + at;
    case Gone::Dropped:
      return "was dropped" + at;
    case Gone::Recomputed:
      return "was written over by a recompute" + at;
  }
  return "is not there";
}

}  // namespace ullage::plan
