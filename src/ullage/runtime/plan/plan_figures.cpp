// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/plan_figures.h"

#include <cstdint>
#include <memory>

namespace ullage::runtime {
namespace {

std::uint64_t microseconds(Seconds time) { return static_cast<std::uint64_t>(time.count * 1e6); }

}  // namespace

void write_plan_figures(const PlanFollower& follower, store::LedgerSlot& slot) {
  const PlanCounts counts = follower.counts();
  slot.recomputed_ops.store(counts.tape.recomputed_ops);
  slot.recompute_us.store(microseconds(counts.tape.recompute));
  slot.tape_peak.store(counts.tape.peak.count);
  slot.plan_steps.store(counts.steps);
  slot.plan_deviations.store(counts.deviations);
  slot.plan_rescues.store(counts.rescues);
  slot.plan_peak_seen.store(counts.peak.count);
  if (counts.plans > 0 && slot.plans.load() == 0) slot.plan_adopted_at_step.store(slot.steps.load() + 1);
  slot.plans.store(counts.plans);
  if (const std::shared_ptr<const PlanProgram> program = follower.program()) {
    slot.plan_peak.store(program->peak().count);
    slot.plan_overhead_us.store(microseconds(program->overhead()));
    slot.plan_bound_us.store(microseconds(program->bound()));
    slot.plan_recomputes.store(program->recomputes());
    slot.plan_spills.store(program->spills());
  }
}

}  // namespace ullage::runtime
