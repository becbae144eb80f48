// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/run_report.h"

#include "ullage/base/exit_code.h"
#include "ullage/store/budget.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <sstream>
#include <utility>

namespace ullage::report {
namespace {

using store::LedgerPage;
using store::LedgerSlot;

constexpr Bytes kBeyondSense = 1024_GiB * 1024;  // larger figures are not believed
constexpr int kKilledExit = 128 + SIGKILL;       // a shell's exit code if its child was killed

std::vector<const LedgerSlot*> used_slots(const LedgerPage& page) {
  std::vector<const LedgerSlot*> used;
  for (const LedgerSlot& slot : page.slots) {
    if (slot.pid.load() > 0) used.push_back(&slot);
  }
  return used;
}

std::optional<Seconds> median_step(const LedgerSlot& slot) {
  std::vector<std::uint32_t> times;
  for (const auto& word : slot.step_us) {
    if (const std::uint32_t us = word.load(); us != 0) times.push_back(us);  // 0: not written yet
  }
  if (times.empty()) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  double us = *middle;
  if (times.size() % 2 == 0) us = (us + *std::max_element(times.begin(), middle)) / 2;
  return Seconds{us * 1e-6};
}

Outcome outcome_of(const ProcessEnd& end, const LedgerPage& page, const std::vector<const LedgerSlot*>& used) {
  if (end.exit_code == 0) return Outcome::Done;
  if (page.least_for_programs.load() != 0) return Outcome::Infeasible;
  if (end.exit_code == kKilledExit && end.oom_kills == OomKills::Rose) return Outcome::KilledByKernel;
  const bool said =
      std::any_of(used.begin(), used.end(), [](const LedgerSlot* s) { return s->infeasible.load() != 0; });
  // Without the runtime, exit code 4 may mean something else.
  if (said || (!used.empty() && end.exit_code == to_int(ExitCode::Infeasible))) return Outcome::Infeasible;
  if (end.exit_code == to_int(ExitCode::Interrupted)) return Outcome::Interrupted;
  return Outcome::Failed;
}

// Returns the text as one line: control characters become blanks.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  }
  return text;
}

// Returns the slot whose message counts most. First come those whose runtime would not start or could not go on
// (LedgerSlot::infeasible), then those with a refused request, then those with a message. Among equals the process with
// the highest peak wins.
const LedgerSlot* speaker(const std::vector<const LedgerSlot*>& used) {
  const LedgerSlot* best = nullptr;
  auto weight = [](const LedgerSlot* s) {
    return s->infeasible.load() != 0 ? 3 : s->refused.load() != 0 ? 2 : s->message.get().empty() ? 0 : 1;
  };
  for (const LedgerSlot* slot : used) {
    if (best == nullptr || weight(slot) > weight(best) ||
        (weight(slot) == weight(best) && slot->rss_peak.load() > best->rss_peak.load())) {
      best = slot;
    }
  }
  return best;
}

void read_process(RunReport& report, const LedgerSlot& largest) {
  report.process_peak = std::max(report.process_peak, Bytes{largest.rss_peak.load()});
  // The runtime looks only every few milliseconds, but the kernel's peak misses nothing. The pool never held more than
  // pool_resident_peak, so the rest of the peak was outside the pool.
  const Bytes unseen = saturating_sub(report.process_peak, Bytes{largest.pool_resident_peak.load()});
  report.outside_pool = std::max(Bytes{largest.outside_at_peak.load()}, unseen);
  report.pool_peak = Bytes{largest.pool_live_peak.load()};
  report.pool_resident_peak = Bytes{largest.pool_resident_peak.load()};
}

const LedgerSlot& busiest_of(const std::vector<const LedgerSlot*>& used) {
  return **std::max_element(used.begin(), used.end(),
                            [](const LedgerSlot* a, const LedgerSlot* b) { return a->steps.load() < b->steps.load(); });
}

void read_steps(RunReport& report, const std::vector<const LedgerSlot*>& used) {
  const LedgerSlot& busiest = busiest_of(used);
  report.steps = busiest.steps.load();
  if (const std::uint64_t threads = busiest.threads.load(); threads > 0) report.threads = threads;
  if (report.steps > 0u) report.step_median = median_step(busiest);
}

// Returns the least budget with which the process would have come as far. A request that was refused counts only if the
// program did not get along without it.
Bytes least_of(const LedgerSlot& slot, Outcome outcome) {
  const Bytes served{slot.least_budget.load()};
  return outcome == Outcome::Done ? served : std::max(served, Bytes{slot.refused_least.load()});
}

// Returns the least budget of the processes; with several, the largest of them.
std::optional<Bytes> least_budget(const std::vector<const LedgerSlot*>& used, Outcome outcome) {
  Bytes least{};
  for (const LedgerSlot* slot : used) least = std::max(least, least_of(*slot, outcome));
  return least > Bytes{} && least <= kBeyondSense ? std::optional(least) : std::nullopt;
}

Seconds seconds_of(std::uint64_t microseconds) { return {static_cast<double>(microseconds) * 1e-6}; }

// Adds up to the largest number and no further, because a broken process may have written anything.
void add(std::uint64_t& sum, const store::Word& word) {
  const std::uint64_t value = word.load();
  sum = value > UINT64_MAX - sum ? UINT64_MAX : sum + value;
}

Moving moving_of(const std::vector<const LedgerSlot*>& used) {
  Moving moving;
  std::uint64_t waited_us = 0;
  std::uint64_t beside_us = 0;
  for (const LedgerSlot* slot : used) {
    add(moving.out.count, slot->spilled);
    add(moving.back.count, slot->restored);
    add(moving.peak.count, slot->spilled_peak);
    add(moving.rewrites_avoided.count, slot->saved_writes);
    add(moving.unmovable.count, slot->unmovable);
    add(moving.files_let_go.count, slot->files_let_go);
    add(moving.unannounced_accesses, slot->page_faults_healed);
    add(waited_us, slot->spill_wait_us);
    add(beside_us, slot->spill_background_us);
    if (const std::string text = slot->spill_message.get(); !text.empty()) moving.message = one_line(text);
    if (const std::string text = slot->lock_failure.get(); !text.empty()) moving.lock_failure = one_line(text);
  }
  moving.waited = seconds_of(waited_us);
  moving.beside = seconds_of(beside_us);
  return moving;
}

std::optional<PlanFollowed> plan_of(const std::vector<const LedgerSlot*>& used) {
  const LedgerSlot* best = nullptr;
  for (const LedgerSlot* slot : used) {
    if (slot->plans.load() == 0) continue;
    if (best == nullptr || slot->steps.load() > best->steps.load()) best = slot;
  }
  if (best == nullptr) return std::nullopt;
  PlanFollowed plan;
  plan.peak = Bytes{best->plan_peak.load()};
  plan.peak_seen = Bytes{best->plan_peak_seen.load()};
  plan.step = seconds_of(best->plan_step_us.load());
  plan.overhead = seconds_of(best->plan_overhead_us.load());
  if (const std::uint64_t bound = best->plan_bound_us.load(); bound > 0) plan.bound = seconds_of(bound);
  plan.recomputes = best->plan_recomputes.load();
  plan.spills = best->plan_spills.load();
  plan.adopted_at_step = best->plan_adopted_at_step.load();
  plan.plans = best->plans.load();
  plan.steps = best->plan_steps.load();
  plan.deviations = best->plan_deviations.load();
  plan.rescues = best->plan_rescues.load();
  for (std::size_t i = 0; i < plan.calls.size(); ++i) plan.calls[i] = best->plan_calls[i].load();
  plan.away = Bytes{best->plan_calls_away.load()}, plan.back = Bytes{best->plan_calls_back.load()};
  return plan;
}

// Reads what only a card's processes have.
void read_card(RunReport& report, const std::vector<const LedgerSlot*>& used) {
  report.moving.locked.emplace();
  report.driver_calls.emplace();
  for (const LedgerSlot* slot : used) {
    add(report.moving.locked->count, slot->locked);
    for (std::size_t i = 0; i < report.driver_calls->size(); ++i) add((*report.driver_calls)[i], slot->driver_calls[i]);
    if (report.end.dry) continue;
    const std::uint64_t by = slot->counted_by.load();
    if (by == 1) report.counted_by = CountedBy::Driver, report.count_note = one_line(slot->count_note.get());
    if (by == 2 && report.counted_by == CountedBy::Unknown) report.counted_by = CountedBy::DriverAndNvml;
  }
}

void read_recomputing(RunReport& report, const std::vector<const LedgerSlot*>& used) {
  report.plan = plan_of(used);
  std::uint64_t us = 0;
  for (const LedgerSlot* slot : used) {
    add(report.recomputed_ops, slot->recomputed_ops);
    add(report.tape.count, slot->tape_peak);
    add(us, slot->recompute_us);
  }
  report.recompute = seconds_of(us);
}

// Returns a budget that would have been enough. If the runtime's own least budget is above the stated budget, returns
// it as it is. Otherwise moving failed, and only a budget that holds everything serves: the pool's live peak, the
// request, the outside and the margin. Adds 5 % to that sum and rounds it up to 16 MiB. Returns nothing if the outside
// was never measured, because the card does not exist. Also returns nothing if a figure is absurd: a request can have
// 2^63 bytes.
std::optional<Bytes> enough_for(const LedgerSlot& slot, std::optional<Bytes> budget, Outcome outcome) {
  if (const Bytes least = least_of(slot, outcome); least > budget.value_or(Bytes{}) && least <= kBeyondSense)
    return least;
  const Bytes request{slot.refused.load() != 0 ? slot.last_request.load() : 0};
  const Bytes outside = std::max(Bytes{slot.outside_expected.load()}, Bytes{slot.outside_at_peak.load()});
  const Bytes pool{slot.pool_live_peak.load()};
  if (outside == Bytes{}) return std::nullopt;
  if (request > kBeyondSense || pool > kBeyondSense || outside > kBeyondSense) return std::nullopt;
  const Bytes need = outside + store::Budget::kMargin + pool + request;
  return round_up(need + need / 20, 16_MiB);
}

void read_words(RunReport& report, const LedgerPage& page, const std::vector<const LedgerSlot*>& used) {
  const LedgerSlot& spoke = *speaker(used);
  report.message = one_line(spoke.message.get());
  for (const LedgerSlot* slot : used) {
    report.refused += slot->refused.load();
    report.over_budget = std::max(report.over_budget, Bytes{slot->over_budget.load()});
    if (const std::string hash = slot->state_sha256.get(); !hash.empty()) report.state_sha256 = one_line(hash);
  }
  if (spoke.refused.load() != 0) {
    report.refused_request = Bytes{spoke.last_request.load()};
    report.refused_op = one_line(spoke.last_op.get());
  }
  if (spoke.refused.load() != 0 || spoke.infeasible.load() != 0) {
    report.budget_to_try = enough_for(spoke, report.budget, report.outcome);
  }
  if (const Bytes least{page.least_for_programs.load()}; least > Bytes{}) {
    report.message = one_line(page.too_little.get());
    report.ended_for_programs = true;
    report.budget_to_try = std::max(report.budget_to_try.value_or(Bytes{}), least);
  }
}

// Reads LedgerSlot::changes.
void read_changes(RunReport& report, const std::vector<const LedgerSlot*>& used) {
  for (const LedgerSlot* slot : used) {
    std::istringstream lines(slot->changes.get());
    std::string results, what;
    while (lines >> results && std::getline(lines >> std::ws, what)) {
      const bool different = results == advise::name(advise::Effect::Different);
      report.effect = std::max(report.effect, different ? advise::Effect::Different : advise::Effect::Rounding);
      trace::ResultChange change{one_line(what), different ? results : advise::name(advise::Effect::Rounding)};
      if (std::ranges::find(report.changes, change) == report.changes.end())
        report.changes.push_back(std::move(change));
    }
  }
}

CastSteps cast_steps_of(const LedgerSlot& slot) {
  const auto time = [](const store::Word& us) {
    return us.load() > 0 ? std::optional(seconds_of(us.load())) : std::nullopt;
  };
  CastSteps steps;
  const std::uint64_t why = slot.cast_why.load();
  steps.why = why == 1 ? CastSteps::Why::NoExactPlan : why == 2 ? CastSteps::Why::DearPlan : CastSteps::Why::NotNeeded;
  steps.from = slot.cast_from.load(), steps.until = slot.cast_until.load();
  steps.exact_step = time(slot.exact_step_us), steps.cast_step = time(slot.cast_step_us);
  return steps;
}

void read_recording(RunReport& report, const std::vector<const LedgerSlot*>& used) {
  for (const LedgerSlot* slot : used) {
    if (slot->recorded.load() == 0) continue;
    report.recorded = true;
    report.recorded_steps = std::max(report.recorded_steps, slot->recorded_steps.load());
  }
}

}  // namespace

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::Done:
      return "done";
    case Outcome::Failed:
      return "failed";
    case Outcome::Infeasible:
      return "infeasible";
    case Outcome::KilledByKernel:
      return "killed_by_kernel";
    case Outcome::Interrupted:
      return "interrupted";
  }
  return "failed";
}

const char* name(CountedBy by) {
  switch (by) {
    case CountedBy::System:
      return "operating system";
    case CountedBy::DryCard:
      return "dry card";
    case CountedBy::Driver:
      return "driver";
    case CountedBy::DriverAndNvml:
      return "driver and nvml";
    case CountedBy::Unknown:
      break;
  }
  return nullptr;
}

bool least_is_partial(const RunReport& report) {
  const bool had_to_move = report.moving.happened() || report.moving.files_let_go > Bytes{};
  return report.least_budget && (report.outcome != Outcome::Done || !had_to_move);
}

std::string device_name(const RunReport& report) {
  return report.card ? "cuda:" + std::to_string(*report.card) : "cpu";
}

RunReport summarize(const LedgerPage& page, const ProcessEnd& end) {
  const std::vector<const LedgerSlot*> used = used_slots(page);
  RunReport report;
  report.end = end;
  report.outcome = outcome_of(end, page, used);
  report.attached = !used.empty();
  if (const Bytes budget{page.budget.load()}; budget > Bytes{}) report.budget = budget;
  if (const std::uint64_t card = page.card.load(); card > 0) report.card = card - 1;
  report.host_memory = Bytes{page.host_memory.load()};
  if (end.facts.cast) report.effect = advise::Effect::Rounding;
  if (!report.card) report.process_peak = end.peak;
  if (!report.card) report.counted_by = CountedBy::System;
  if (end.dry) report.counted_by = CountedBy::DryCard;
  // A dry card counts at every change, not only when the runtime looks.
  if (end.dry && report.attached) report.process_peak = end.dry->peak;
  if (report.attached) {
    read_process(report, **std::max_element(used.begin(), used.end(), [](const LedgerSlot* a, const LedgerSlot* b) {
                   return a->rss_peak.load() < b->rss_peak.load();
                 }));
    read_steps(report, used);
    read_words(report, page, used);
    if (end.record_file) read_recording(report, used);
    read_changes(report, used);
    if (std::ranges::find(end.allowed, "if-needed") != end.allowed.end())
      report.cast_steps = cast_steps_of(busiest_of(used));
    report.moving = moving_of(used);
    report.moving.programs_held = seconds_of(page.programs_held_us.load());
    if (report.card) read_card(report, used);
    read_recomputing(report, used);
    report.least_budget = least_budget(used, report.outcome);
    if (const Bytes least{page.least_for_programs.load()}; least > Bytes{})
      report.least_budget = std::max(report.least_budget.value_or(Bytes{}), least);
    if (std::ranges::find(end.allowed, "bf16") != end.allowed.end()) {
      report.half_ops = 0;
      for (const LedgerSlot* slot : used) add(*report.half_ops, slot->half_ops);
    }
    // Storages that were moved out stay live, so the plain program would have had the same live bytes.
    if (report.refused == 0) report.plain_pool_peak = report.pool_peak;
    if (report.plain_pool_peak && *report.plain_pool_peak <= kBeyondSense && *report.outside_pool <= kBeyondSense) {
      report.plain_total = *report.plain_pool_peak + *report.outside_pool;
    }
  }
  // The tree is counted only while it has several processes; before and after, its one process is the tree.
  if (const Bytes tree{page.tree_peak.load()}; tree > Bytes{} && !report.card) {
    report.tree_peak = std::max(tree, report.process_peak);
  }
  // The operating system's figure decides, even if the runtime noticed nothing. It has no figure for a card, but a dry
  // card has.
  if (report.budget) {
    const Bytes peak = report.tree_peak.value_or(report.process_peak);
    report.over_budget = std::max(report.over_budget, saturating_sub(peak, *report.budget));
    // The least budget counts what other processes needed at different times together. A run that was done within its
    // budget shows that this budget is enough.
    if (report.least_budget && report.outcome == Outcome::Done && report.refused == 0 &&
        report.over_budget == Bytes{}) {
      report.least_budget = std::min(*report.least_budget, *report.budget);
    }
  }
  return report;
}

}  // namespace ullage::report
