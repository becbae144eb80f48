// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/plan_words.h"

#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ullage::report {
namespace {

using PlanOutcome = plan::Plan::Outcome;

std::string bound_text(const plan::Plan& plan) {
  return plan.bound ? fmt::format(" (bound {})", percent_text(*plan.bound, plan.step)) : "";
}

}  // namespace

std::string percent_text(Seconds part, Seconds step) {
  if (part.count <= 0) return "+0 %";
  if (step.count <= 0) return "-";
  const double percent = 100 * part.count / step.count;
  return percent < 0.05 ? "<0.1 %" : fmt::format("+{:.1f} %", percent);
}

std::string plan_headline(const PlanReport& report) {
  const plan::Plan& plan = report.planned->plan;
  const std::string memory = to_string(report.planned->memory);
  switch (plan.outcome) {
    case PlanOutcome::Fits:
      return fmt::format("Fits {} as it is: tensors peak at {}, {} are free; no plan is needed", memory,
                         to_string(plan.plain_peak), to_string(plan.budget - plan.plain_peak));
    case PlanOutcome::Planned:
      return fmt::format("Fits {} with a plan: tensors peak at {} instead of {}, time {}{}", memory,
                         to_string(plan.peak), to_string(plan.plain_peak), percent_text(plan.overhead, plan.step),
                         bound_text(plan));
    case PlanOutcome::Infeasible:
      break;
  }
  return fmt::format("DOES NOT FIT {}: the least found with these levers is --memory {}{}", memory,
                     as_option(report.beside.memory_for(plan.least)),
                     plan.least_set_by.empty() ? "" : ", set by " + plan.least_set_by);
}

std::string way_text(const ComparedWay& way) {
  return way.changes.empty() ? "as it is" : fmt::format("{}", fmt::join(way.changes, " "));
}

std::string choice_text(std::span<const ComparedWay> ways) {
  for (const ComparedWay& way : ways) {
    if (!way.chosen) continue;
    const std::string results = plan::word_of(way.results);
    const std::string cheapest =
        fmt::format("({}): the cheapest that fits, {} a step", results, to_string(way.seconds()));
    if (way.results != plan::Lever::Results::BitEqual) return fmt::format("{} {}", way_text(way), cheapest);
    if (way.outcome == PlanOutcome::Fits) return "the program as it is: it fits, so no result changes";
    // The only way that was looked at: its plan adds little.
    if (ways.size() == 1)
      return fmt::format("the program as it is, with a plan ({}) that adds {} to a step", results,
                         percent_text(way.overhead, way.step));
    return "the program as it is, with a plan " + cheapest;
  }
  return "";
}

std::string choice_sentence(const PlanReport& report) {
  if (report.ways.empty()) return "";
  const std::string chosen = choice_text(report.ways);
  return chosen.empty() ? "Nothing that is allowed fits" : "Chosen: " + chosen;
}

Bytes kept_free(const PlanReport& report) {
  const plan::Plan& plan = report.planned->plan;
  const plan::BesideTensors& beside = report.beside;
  if (plan.outcome == PlanOutcome::Infeasible) return beside.kept_free(plan.least);
  // Not kept_free() of the budget: it can be a byte less, if one more byte of memory gives no room for another byte of
  // tensors.
  return saturating_sub(report.planned->memory, plan.budget + beside.rounding + beside.outside + beside.margin);
}

diagnose::Bar memory_bar(const PlanReport& report) {
  using Kind = diagnose::Bar::Part::Kind;
  const plan::Plan& plan = report.planned->plan;
  const bool fits = plan.outcome != PlanOutcome::Infeasible;
  const Bytes tensors = fits ? plan.peak : plan.least;
  diagnose::Bar bar;
  bar.total = fits ? report.planned->memory : report.beside.memory_for(plan.least);
  bar.of = fits ? fmt::format("How the {} are used:", to_string(bar.total))
                : fmt::format("How the least, {}, would be used:", to_string(bar.total));
  bar.parts = {{Kind::Live, plan.outcome == PlanOutcome::Planned ? "tensors, as planned" : "tensors", tensors},
               {Kind::Usable, "free for tensors", fits ? plan.budget - plan.peak : Bytes{}},
               {Kind::Stuck, "whole pages and slabs", report.beside.rounding},
               {Kind::NotPyTorch, "program and libraries", report.beside.outside},
               {Kind::Free, "margin between two looks", report.beside.margin},
               {Kind::Free, "left free for the run", kept_free(report)}};
  return bar;
}

std::vector<LeverTotal> lever_totals(const plan::Plan& plan) {
  std::vector<LeverTotal> totals;
  for (const plan::LeverUse& use : plan.levers) {
    auto at = std::find_if(totals.begin(), totals.end(), [&](const LeverTotal& one) { return one.lever == use.lever; });
    if (at == totals.end()) at = totals.insert(at, {use.lever, 0, {}, {}});
    ++at->sites, at->bytes += use.bytes, at->seconds.count += use.seconds.count;
  }
  std::stable_sort(totals.begin(), totals.end(),
                   [](const LeverTotal& a, const LeverTotal& b) { return a.bytes > b.bytes; });
  return totals;
}

std::string peak_sentence(const PlanReport& report) {
  if (report.planned_levels.empty()) return "";
  // The plain peak may be just before or after that op, so the sentence takes it from the plan.
  const auto most = std::max_element(report.plain_levels.begin(), report.plain_levels.end());
  const plan::OpIndex at = report.plain_levels.id_of(most);
  return fmt::format("Where plain execution peaks ({}, {}), {} are present instead of {}", report.step.ops[at].name,
                     trace::name(report.step.ops[at].phase), to_string(report.planned_levels[at]),
                     to_string(report.planned->plan.plain_peak));
}

std::string least_sentence(const PlanReport& report) {
  const plan::Plan& plan = report.planned->plan;
  if (plan.outcome == PlanOutcome::Infeasible || plan.least == Bytes{}) return "";
  std::string text =
      fmt::format("With these levers the least is about --memory {}", as_option(report.beside.memory_for(plan.least)));
  if (!plan.least_set_by.empty()) text += ", set by " + plan.least_set_by;
  return text;
}

}  // namespace ullage::report
