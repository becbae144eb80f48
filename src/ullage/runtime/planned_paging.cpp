// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/planned_paging.h"

#include "ullage/base/threads.h"
#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/pool/fault_handler.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace ullage::runtime {
namespace {

std::uint64_t microseconds(Seconds time) { return static_cast<std::uint64_t>(time.count * 1e6); }

}  // namespace

PlannedPaging::PlannedPaging(Parts parts) : parts_(std::move(parts)) {
  const Session::Settings& settings = parts_.settings;
  if (settings.stress == Session::Stress::Thread) return;
  follower_.emplace(parts_.store, parts_.pager, parts_.pool, parts_.device.stands_on().least_movable);
  paging_.emplace(parts_.pager, parts_.pool, *follower_, parts_.device.work());
  if (parts_.device.driver_calls()) follower_->set_step_hook([this](bool ended) { note_planned_step(ended); });
  if (settings.stress != Session::Stress::None) parts_.pager.follow_from_now_on();
  if (!settings.plan_file.empty()) {
    adopt_plan_file();
  } else if (settings.plans && settings.stress == Session::Stress::None && settings.rehearsal.empty()) {
    if (settings.casts_if_needed) cast_choice_.emplace();
    planning_.emplace(parts_.pager, *follower_, planning_settings());
  }
}

PlannedPaging::StepMoves PlannedPaging::moves_so_far() const {
  const store::PagerCounts moves = parts_.pager.counts();
  return {*parts_.device.driver_calls(), moves.spilled + moves.dropped, moves.restored};
}

// Called by the follower, under its lock.
void PlannedPaging::note_planned_step(bool ended) {
  const StepMoves now = moves_so_far();
  const std::lock_guard lock(step_moves_lock_);
  if (!ended) {
    step_began_ = now;
    return;
  }
  for (std::size_t i = 0; i < now.calls.size(); ++i) planned_step_.calls[i] = now.calls[i] - step_began_.calls[i];
  planned_step_.away = now.away - step_began_.away, planned_step_.back = now.back - step_began_.back;
}

void PlannedPaging::adopt_plan_file() {
  const Session::Settings& settings = parts_.settings;
  const Result<std::shared_ptr<PlanProgram>> given =
      read_program(settings.plan_file, torch_version(), parts_.device.device().str());
  if (!given) {
    if (settings.warn) settings.warn(given.error().text());
    return;
  }
  const bool on_card = parts_.device.stands_on().kernels == plan::Kernels::Card;
  const KernelFacts facts = on_card ? KernelFacts{} : probe_kernels();
  if (!facts.recomputes_batch_norm) (*given)->run_batch_norms_again();
  if (!facts.convolution_input_unread) (*given)->read_everything();
  follower_->adopt(*given);
  parts_.pager.follow_from_now_on();
}

Planning::Settings PlannedPaging::planning_settings() {
  Planning::Settings planning;
  planning.figures = parts_.figures;
  planning.say = parts_.settings.say;
  planning.wait = parts_.settings.waits_for_plan;
  planning.live = [this] { return parts_.pool.live(); };
  planning.on = parts_.device.stands_on();
  planning.synchronize = [this] { parts_.device.synchronize(); };
  if (cast_choice_) {
    planning.cast_choice = &*cast_choice_;
    planning.cast_changed = [this](bool casts) { cast_changed(casts); };
  }
  if (parts_.device.is_the_process()) {  // planning takes its bytes from the budgeted memory itself
    planning.reserve = [this](Bytes bytes) { return parts_.charges.begin_planning(bytes); };
    planning.give_back = [this] { parts_.charges.end_planning(); };
    planning.limit_after_step = [this](Bytes limit, Bytes more) {
      return parts_.charges.limit_after_step(limit, more);
    };
  }
  return planning;
}

// Called at a border of steps, after the step that ended was counted.
void PlannedPaging::cast_changed(bool casts) {
  if (Recorder* recorder = Session::current()->recorder(); recorder != nullptr && casts)
    recorder->changes_results({"--allow bf16", "rounding"});
  store::LedgerSlot* slot = Session::current()->slot();
  if (slot == nullptr) return;
  const std::uint64_t next = slot->steps.load() + 1;
  (casts ? slot->cast_from : slot->cast_until).store(next);
}

void PlannedPaging::start(std::function<void(const store::Pager::FaultAnswer&)> give_up) {
  if (parts_.device.heals_faults()) install_fault_handler(parts_.pager, std::move(give_up));
  if (parts_.settings.stress == Session::Stress::Thread) {
    start_thread([this] {
      for (;; ++evict_rounds_) parts_.pager.evict_all();
    });
  }
  start_thread([this] { parts_.pager.run_in_background(); });
  if (paging_) {
    set_touch([this](Address begin, Bytes) {
      parts_.pager.bring_back(begin, /*may_write=*/true);
      parts_.pool.update_marks();
    });
  }
}

// The follower is outermost: it carries out the plan's actions before the pager looks for an op's inputs.
std::vector<OpListener*> PlannedPaging::before_the_recorder() {
  if (!paging_) return {};
  return {&*follower_, &*paging_};
}

void PlannedPaging::allocating() {
  if (planning_ && parts_.pager.under_pressure()) planning_->begin();
}

void PlannedPaging::allocated() {
  if (parts_.settings.stress == Session::Stress::Thread) let_the_evictor_in();
}

bool PlannedPaging::freeing(Address at, bool may_stay) { return follower_ && follower_->freeing(at, may_stay); }

void PlannedPaging::mark_step() {
  if (follower_) follower_->mark_step();
  if (planning_) planning_->mark_step();
}

void PlannedPaging::optimizer_was_called() {
  if (follower_) follower_->note_step_end();
  if (planning_) planning_->optimizer_was_called();
}

void PlannedPaging::write_figures(store::LedgerSlot& slot) const {
  if (cast_choice_) {
    slot.cast_why.store(static_cast<std::uint64_t>(cast_choice_->why()));
    slot.exact_step_us.store(microseconds(cast_choice_->exact_step().value_or(Seconds{})));
    slot.cast_step_us.store(microseconds(cast_choice_->cast_step().value_or(Seconds{})));
  }
  if (!follower_) return;
  const PlanCounts counts = follower_->counts();
  slot.recomputed_ops.store(counts.tape.recomputed_ops);
  slot.recompute_us.store(microseconds(counts.tape.recompute));
  slot.tape_peak.store(counts.tape.peak.count);
  slot.plan_steps.store(counts.steps);
  slot.plan_deviations.store(counts.deviations);
  slot.plan_rescues.store(counts.rescues);
  slot.plan_peak_seen.store(counts.peak.count);
  {
    const std::lock_guard lock(step_moves_lock_);
    for (std::size_t i = 0; i < planned_step_.calls.size(); ++i) slot.plan_calls[i].store(planned_step_.calls[i]);
    slot.plan_calls_away.store(planned_step_.away.count), slot.plan_calls_back.store(planned_step_.back.count);
  }
  if (counts.plans > 0 && slot.plans.load() == 0) slot.plan_adopted_at_step.store(slot.steps.load() + 1);
  slot.plans.store(counts.plans);
  if (const std::shared_ptr<const PlanProgram> program = follower_->program()) {
    slot.plan_peak.store(program->peak().count);
    slot.plan_step_us.store(microseconds(program->step()));
    slot.plan_overhead_us.store(microseconds(program->overhead()));
    slot.plan_bound_us.store(microseconds(program->bound()));
    slot.plan_recomputes.store(program->recomputes());
    slot.plan_spills.store(program->spills());
  }
}

void PlannedPaging::say_goodbye() {
  if (planning_) planning_->say_goodbye();
}

void PlannedPaging::after_fork_in_child() {
  if (follower_) follower_->after_fork_in_child();
  if (planning_) planning_->after_fork_in_child();
}

// Every 16th allocation waits until everything was evicted once more. Otherwise a short program can end before the
// scheduler runs the evicting thread (seen on a busy machine). The wait is bounded, because a forked child has no such
// thread.
void PlannedPaging::let_the_evictor_in() {
  if (++allocations_ % 16 != 0) return;
  const std::uint64_t before = evict_rounds_;
  for (int looks = 0; looks < 2000 && evict_rounds_ < before + 2; ++looks) usleep(50);
}

}  // namespace ullage::runtime
