// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier.h"

#include "ullage/plan/verify/verifier_machine.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace ullage::plan {
namespace {

std::string at_text(const Step& step, OpIndex op) {
  if (!step.ops.has(op)) return "op " + std::to_string(op.value);
  return "op " + std::to_string(op.value) + " (" + step.ops[op].name + ")";
}

// The error if an action is at an op that the step does not have, or out of order; else nothing.
std::optional<Error> out_of_order(const Step& step, const Schedule& schedule) {
  const Action* last = nullptr;
  for (const Action& action : schedule.actions) {
    const std::string where = at_text(step, action.at);
    if (!step.ops.has(action.at)) {
      return Error{Error::Kind::BadArgument, "an action at an op that the step does not have", where};
    }
    if (last != nullptr && std::tie(action.at, action.after) < std::tie(last->at, last->after)) {
      return Error{Error::Kind::BadArgument, "an action out of order: it comes after one at " + at_text(step, last->at),
                   where};
    }
    last = &action;
  }
  return std::nullopt;
}

// Simulates one whole step. Returns false if the machine refuses something; machine.refused() says what.
bool carry_out(VerifierMachine& machine, const Step& step, const Schedule& schedule) {
  if (!machine.begin_step(schedule.away)) return false;
  auto next = schedule.actions.begin();
  const auto act = [&](OpIndex at, bool after) {
    for (; next != schedule.actions.end() && next->at == at && next->after == after; ++next) {
      if (!machine.act(*next)) return false;
    }
    return true;
  };
  for (const OpIndex op : step.ops.ids()) {
    if (!machine.pass_gap(gap_before(op)) || !machine.enter(op)) return false;
    if (!act(op, false) || !machine.run(op) || !act(op, true)) return false;
  }
  return machine.pass_gap(gap_before(step.ops.next_id())) && machine.end_step();
}

}  // namespace

Result<Verified> verify(const Step& step, const Schedule& schedule, Bytes budget) {
  if (const auto error = out_of_order(step, schedule)) return *error;
  VerifierMachine machine(step);
  if (!carry_out(machine, step, schedule)) return machine.refused();
  const Table<OpIndex, Bytes> first = machine.figures().levels;
  if (!carry_out(machine, step, schedule)) return machine.refused();
  const Verified& figures = machine.figures();
  // end_step() refuses a step that does not end as it began. So the second step begins like the first.
  ULLAGE_CHECK(figures.levels == first, "two steps that begin alike and differ");
  if (figures.peak > budget) {
    return Error{
        Error::Kind::BadArgument,
        std::to_string(figures.peak.count) + " bytes are present, the budget is " + std::to_string(budget.count),
        at_text(step, figures.peak_at)};
  }
  return figures;
}

}  // namespace ullage::plan
