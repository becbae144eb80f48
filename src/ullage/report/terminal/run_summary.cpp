// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"
#include "ullage/report/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <ostream>

namespace ullage::report {
namespace {

std::string what_happened(const RunReport& report) {
  switch (report.outcome) {
    case Outcome::Done:
      return "done";
    case Outcome::Infeasible:
      return "refused, the budget cannot be met";
    case Outcome::KilledByKernel:
      return "KILLED BY THE KERNEL for lack of memory";
    case Outcome::Interrupted:
      return "interrupted";
    case Outcome::Failed:
      break;
  }
  if (report.end.signal) return fmt::format("failed, killed by signal {}", *report.end.signal);
  return fmt::format("failed with exit code {}", report.end.exit_code);
}

std::string at(const advise::Place& place) {
  if (place.file.empty()) return "";
  return fmt::format(" at {}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

std::string time_line(const RunReport& report) {
  std::string line = what_happened(report);
  if (report.steps.value_or(0) > 0) {
    line += fmt::format(": {} step{} in {}", *report.steps, *report.steps == 1 ? "" : "s", to_string(report.end.wall));
    if (report.step_median) line += fmt::format(", {} a step (median)", to_string(*report.step_median));
    return line;
  }
  return line + fmt::format(": {}, no step was counted", to_string(report.end.wall));
}

// Says who counted the bytes of a card. Elsewhere it is clear: the operating system, or the dry card that the line
// names.
std::string counted(const RunReport& report) {
  if (report.counted_by == CountedBy::DriverAndNvml) return "; counted by the driver, others' bytes by NVML";
  if (report.counted_by != CountedBy::Driver) return "";
  return "; counted by the driver alone, others' bytes as this program's: " + report.count_note;
}

std::string peak_line(const RunReport& report) {
  if (report.card && !report.attached) return "";
  std::string line;
  // A program that was not allowed to start, because its libraries alone exceed the budget, did not go over the budget.
  const bool not_let_in = report.outcome == Outcome::Infeasible && report.refused == 0;
  if (report.over_budget > Bytes{} && !not_let_in) {
    line = fmt::format("OVER THE BUDGET by {} ({} bytes): ", to_string(report.over_budget), report.over_budget.count);
  }
  line += report.end.dry ? "peak of the dry card " : report.card ? "peak of the card " : "peak ";
  const Bytes peak = report.tree_peak.value_or(report.process_peak);
  line += to_string(peak);
  if (report.budget) line += " of " + to_string(*report.budget);
  if (report.budget && peak <= *report.budget) line += fmt::format(" ({} left)", to_string(*report.budget - peak));
  if (!report.budget && !report.card) line += ", no budget";
  if (report.tree_peak) line += "; its largest process held " + to_string(report.process_peak);
  if (!report.attached) return line;
  const Bytes outside = std::min(*report.outside_pool, report.process_peak);
  line += fmt::format(": {} pool and {} outside it", to_string(report.process_peak - outside), to_string(outside));
  return line + counted(report);
}

std::string unattached_line(const RunReport& report) {
  if (report.card) {
    return "NO BUDGET WAS ENFORCED on the card: no process of the program loaded Ullage's runtime; no peak was "
           "measured";
  }
  if (!report.budget) return "no process of the program loaded Ullage's runtime; only the peak was measured";
  return "NO BUDGET WAS ENFORCED: no process of the program loaded Ullage's runtime; only the peak was measured";
}

// Says what the program needs without a budget. Under a budget that is more than this run held.
std::string plain_line(const RunReport& report) {
  if (!report.attached) return unattached_line(report);
  if (report.steps.value_or(0) == 0 && report.pool_peak.value_or(Bytes{}) == Bytes{}) return "";
  const char* who = !report.end.facts.cast ? "the plain program"
                    : report.cast_steps    ? "without a budget the program"
                                           : "in bf16 and without a budget it";
  if (report.plain_pool_peak && !report.moving.happened() && report.recomputed_ops == 0) {
    return fmt::format("{} would have held the same {} of tensors: nothing was moved or recomputed", who,
                       to_string(*report.plain_pool_peak));
  }
  if (report.plain_total) {
    return fmt::format("{} would have held {} of tensors, at least {} with what is outside the pool", who,
                       to_string(*report.plain_pool_peak), to_string(*report.plain_total));
  }
  return fmt::format("{} would have gone past {} of tensors; how far is not known", who,
                     to_string(report.pool_peak.value_or(Bytes{})));
}

// Returns "+6 % time (bound +4 %)", relative to the step that the plan was made for; in seconds if that is not known.
std::string plan_time(const PlanFollowed& plan) {
  const double plain = plan.step.count;
  const auto text = [&](Seconds added) {
    return plain > 0 ? fmt::format("+{:.0f} %", 100 * added.count / plain) : "+" + to_string(added);
  };
  const std::string bound = plan.bound ? fmt::format(" (bound {})", text(*plan.bound)) : "";
  return text(plan.overhead) + (plain > 0 ? " time" : " a step") + bound;
}

std::string plan_line(const RunReport& report) {
  if (!report.plan) return "";
  const PlanFollowed& plan = *report.plan;
  const auto count_of = [](std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string line =
      fmt::format("plan: {}, {}, {} recomputed, {} spilled; adopted at step {}", to_string(plan.peak), plan_time(plan),
                  count_of(plan.recomputes, "op"), count_of(plan.spills, "storage"), plan.adopted_at_step);
  if (plan.steps == 0) line += "; no step ran as planned";
  if (report.card && plan.steps > 1 && plan.peak_seen > Bytes{})
    line += fmt::format("; {} in its last step", count_of(store::sum_of(plan.calls), "driver call"));
  if (plan.deviations > 0) {
    line += fmt::format("; {} from it, {} made", count_of(plan.deviations, "deviation"), count_of(plan.plans, "plan"));
  }
  if (plan.rescues > 0) {
    line += fmt::format("; {} {} evicted or recomputed on demand in spite of it", count_of(plan.rescues, "storage"),
                        plan.rescues == 1 ? "was" : "were");
  }
  return line;
}

// The dry card also counts what the program locks itself.
std::string locked_text(const RunReport& report) {
  const Bytes locked = report.end.dry ? report.end.dry->pinned_peak : report.moving.locked.value_or(Bytes{});
  if (locked == Bytes{} && report.moving.lock_failure.empty()) return "";
  std::string text = fmt::format(", {} of locked host memory", to_string(locked));
  if (!report.moving.lock_failure.empty()) text += fmt::format(" (no more: {})", report.moving.lock_failure);
  return text;
}

std::string moving_line(const RunReport& report) {
  const Moving& moving = report.moving;
  // If this caused a refusal, the refusal's own line states the reason.
  const bool reason = !moving.message.empty() && report.message.find(moving.message) == std::string::npos;
  const std::string files =
      moving.files_let_go > Bytes{} ? to_string(moving.files_let_go) + " of mapped files were let go" : "";
  std::string least = report.least_budget ? "; least budget " + as_option(*report.least_budget) : "";
  if (report.least_budget && least_is_partial(report)) least += " so far";
  if (!moving.happened()) {
    if (reason) return "nothing could be moved out: " + moving.message;
    return files.empty() ? "" : files + " and read again when they were used" + least;
  }
  std::string line = "moved out " + to_string(moving.out);
  if (moving.rewrites_avoided > moving.out / 2) {  // else the bytes moved out are about those written
    line += ", of which " + to_string(moving.rewrites_avoided) + " had not changed and were not written,";
  }
  line += " and back " + to_string(moving.back);
  if (const std::uint64_t steps = report.steps.value_or(0); steps > 0) {
    line += fmt::format(" in {} step{}", steps, steps == 1 ? "" : "s");
  }
  line += fmt::format(" (the program waited {} of {} for it", to_string(moving.waited), to_string(report.end.wall));
  if (const double all = moving.waited.count + moving.beside.count; all > 0) {
    line += fmt::format("; {:.0f} % of the moving was hidden behind computing", 100 * moving.beside.count / all);
  }
  if (moving.programs_held.count > 0) {
    line += fmt::format("; programs that it started were held for {} until there was room",
                        to_string(moving.programs_held));
  }
  line += ')';
  line += locked_text(report);
  if (!files.empty()) line += ", " + files;
  line += least;
  if (reason) line += "; moving failed: " + moving.message;
  return line;
}

// Reports an error of Ullage or of the program. It comes first, because a real card would have ended the program or
// given wrong bytes.
std::string finding_line(const RunReport& report) {
  if (!report.end.dry || report.end.dry->findings == 0) return "";
  const DryCardCount& dry = *report.end.dry;
  return fmt::format("WRONG ON A REAL CARD: {} error{}, the first: {}", dry.findings, dry.findings == 1 ? "" : "s",
                     dry.finding_texts.empty() ? "" : dry.finding_texts.front());
}

std::string refusal_line(const RunReport& report) {
  std::string line;
  if (report.refused > 0) {
    line = fmt::format("{} request{} refused", report.refused, report.refused == 1 ? " was" : "s were");
    if (report.message.empty() && report.refused_request) {
      line += fmt::format(", the last of {}", to_string(*report.refused_request));
      if (!report.refused_op.empty()) line += " by " + report.refused_op;
    }
    if (!report.message.empty()) line += ": ";
  }
  return line + report.message;
}

// Anybody may send SIGKILL, so this says what the control groups know.
std::string kill_line(const RunReport& report) {
  const bool killed = report.end.signal == SIGKILL;
  if (report.outcome == Outcome::KilledByKernel || (!killed && report.end.oom_kills != OomKills::Rose)) return "";
  if (report.end.oom_kills == OomKills::Rose) {
    return "the control group counted a process killed for lack of memory while this ran";
  }
  if (report.end.oom_kills == OomKills::Unchanged)
    return "killed by signal 9; the control group counted no out-of-memory kill";
  return "killed by signal 9; whether for lack of memory cannot be read here (no control group's count)";
}

// A trace that was not written is an error, which the caller reports.
std::string recording_line(const RunReport& report) {
  if (!report.end.record_file || !report.recorded) return "";
  const std::string file = quoted(*report.end.record_file);
  const std::string what = report.recorded_steps == 0
                               ? std::string("the run, in which no whole step was found")
                               : fmt::format("{} step{}", report.recorded_steps, report.recorded_steps == 1 ? "" : "s");
  return fmt::format("recorded {}: {}; next: ullage explain {}", what, file, file);
}

const char* why_that_budget(const RunReport& report) {
  if (report.ended_for_programs) return "   (at least: the program that was stopped may need more)";
  if (report.refused == 0) return "   (enough to start)";
  return report.budget_to_try == report.least_budget ? "   (at least: ops that were not reached may need more)"
                                                     : "   (enough for the refused request)";
}

// Returns the command of a run like this one, with `options`.
std::string next_run(const RunReport& report, const std::string& options) {
  std::string all = report.card ? "--device " + device_name(report) + " " : "";
  if (report.end.dry) all = "--dry --device " + report.end.dry->word + " ";
  // The options of a way that was chosen stand in the target.
  if (!report.end.allowed.empty() && report.end.ways.empty())
    all += fmt::format("--allow {} ", fmt::join(report.end.allowed, ","));
  return "next: " + command_line("run " + all + options, report.end.target);
}

// The kernel gave too little of the machine's memory. With a card, most of that memory holds what left the card.
std::string next_after_kill(const RunReport& report) {
  const Bytes held = report.card ? report.host_memory : report.process_peak;
  if (!report.attached || held <= 64_MiB) return "";
  if (report.card) {
    const Bytes less = round_down(held / 2, 1_MiB);
    return next_run(report, "--host-memory " + as_option(less)) + "   (half of what it was given)";
  }
  const Bytes less = round_down(held - held / 10, 1_MiB);
  return next_run(report, "--memory " + as_option(less)) + "   (below what the kernel gave)";
}

std::string next_line(const RunReport& report) {
  if (report.outcome == Outcome::KilledByKernel) {
    if (const std::string next = next_after_kill(report); !next.empty()) return next;
  }
  if (report.refused > 0 && report.budget_to_try && report.budget && report.cast_steps &&
      report.cast_steps->from == 0 && report.outcome != Outcome::Done) {
    RunReport cast = report;
    std::erase(cast.end.allowed, "if-needed");
    return next_run(cast, "--memory " + as_option(*report.budget)) +
           fmt::format("   (in bf16 from its first step on; exact it needs {})", to_string(*report.budget_to_try));
  }
  if (report.budget_to_try && report.outcome != Outcome::Done) {
    return next_run(report, "--memory " + as_option(*report.budget_to_try)) + why_that_budget(report);
  }
  if (report.end.report_file) return "the report is in " + *report.end.report_file;
  if (report.recorded) return "";  // the recording's line names the next command
  if (report.outcome != Outcome::Done) return "next: ullage help run";
  const std::string memory = report.budget ? "--memory " + as_option(*report.budget) + " " : "";
  return next_run(report, memory + "--report run.json") + "   (keeps these figures)";
}

// Says why nothing of the program ran under the autocast that was allowed.
std::string why_nothing(const advise::Facts& facts) {
  if (facts.torch.empty()) {
    return "no Python process of the program imported torch; a C++ program writes ullage::train::AutocastGuard";
  }
  if (facts.autocast) return "the program's own autocast is left alone" + at(*facts.autocast);
  if (!facts.other_device.empty()) {
    return fmt::format("its networks are on {}, the budget is for another device: --device says which",
                       facts.other_device);
  }
  if (facts.evaluation) return "its networks were only evaluated, which takes --allow bf16,evaluation";
  return "no network (a torch.nn.Module with weights) was called";
}

std::string changes_line(const RunReport& report) {
  std::vector<std::string> options;
  for (const trace::ResultChange& change : report.changes)
    options.push_back(fmt::format("{} ({})", change.what, change.results));
  return options.empty() ? "" : fmt::format("results differ by {}", fmt::join(options, ", "));
}

// Says why no step was cast although --allow let the run cast steps if needed.
std::string why_exact(const RunReport& report) {
  if (report.plan) return "the exact plan costs " + plan_time(*report.plan);
  if (report.moving.happened()) return "tensors were moved on demand, and no plan was made";
  return "the program fits as it is";
}

std::string cast_steps_line(const RunReport& report, const CastSteps& steps) {
  if (steps.from == 0) {
    if (report.outcome != Outcome::Done) return "not a bit differs: no step ran in bf16";
    return "not a bit differs: no step ran in bf16, because " + why_exact(report);
  }
  const std::string times =
      steps.exact_step && steps.cast_step ? fmt::format("a step takes {} in bf16, {} under the exact plan",
                                                        to_string(*steps.cast_step), to_string(*steps.exact_step))
      : steps.exact_step ? fmt::format("a step takes {} under the exact plan", to_string(*steps.exact_step))
                         : std::string("no exact plan fits");
  if (steps.until > 0) {
    return fmt::format("results differ in rounding: steps {} to {} were tried in bf16; {}", steps.from, steps.until - 1,
                       times);
  }
  return fmt::format("results differ in rounding from step {} on, in bf16: {}", steps.from, times);
}

}  // namespace

std::string allowance_line(const RunReport& report) {
  const std::vector<ComparedWay>& ways = report.end.ways;
  const bool as_it_is =
      !ways.empty() && std::none_of(ways.begin() + 1, ways.end(), [](auto& way) { return way.chosen; });
  if (as_it_is && report.effect == advise::Effect::SameBits) return "not a bit differs: the program ran as it is";
  if (std::ranges::find(report.end.allowed, "bf16") == report.end.allowed.end()) return changes_line(report);
  const advise::Facts& facts = report.end.facts;
  if (report.cast_steps && (facts.cast || report.cast_steps->from == 0))
    return cast_steps_line(report, *report.cast_steps);
  if (!facts.cast) return "NOTHING RAN IN BF16, and no bit differs: " + why_nothing(facts);
  return fmt::format("results differ in rounding: {} ran in bf16, from the first call of {}{} on",
                     report.half_ops ? fmt::format("{} op{}", *report.half_ops, *report.half_ops == 1 ? "" : "s")
                                     : std::string("forward passes"),
                     facts.cast->name, at(facts.cast->called));
}

void write_summary(const RunReport& report, std::ostream& out) {
  // The loop below clears some of these by their index.
  std::vector<std::string> lines = {
      time_line(report),    peak_line(report), plain_line(report),     plan_line(report),      moving_line(report),
      refusal_line(report), kill_line(report), recording_line(report), allowance_line(report), next_line(report)};
  // There are more than six lines only if nearly everything happened. Then those that are missed least are cleared: how
  // far the plain program would have gone, the plan, the next command, what was moved.
  for (const std::size_t at : {2u, 3u, 9u, 4u}) {
    const auto said = std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return !line.empty(); });
    if (said > 6) lines[at].clear();
  }
  if (const std::string finding = finding_line(report); !finding.empty()) out << "ullage: " << finding << '\n';
  for (const std::string& line : lines) {
    if (!line.empty()) out << "ullage: " << line << '\n';
  }
}

}  // namespace ullage::report
