// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"
#include "ullage/report/plan_report.h"
#include "ullage/report/plan_words.h"
#include "ullage/report/terminal/terminal_bar.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace ullage::report {
namespace {

constexpr std::size_t kSites = 10;      // sites that are named
constexpr unsigned kPlanBarWidth = 64;  // columns; below 76 the legend has one part per line
constexpr std::size_t kLever = 12;      // columns for a lever's name

void add_wrapped(const std::string& text, const TerminalStyle& style, Lines& lines) {
  if (text.empty()) return;
  for (std::string& line : wrap(clean(text, style.unicode), style.width)) lines.push_back(std::move(line));
}

// Clips lines instead of wrapping them, for rows of tables.
Lines clipped(Lines lines, const TerminalStyle& style) {
  for (std::string& line : lines) line = clip(line, style.width);
  return lines;
}

Lines headline(const PlanReport& report, const TerminalStyle& style) {
  Lines lines;
  add_wrapped(plan_headline(report), style, lines);
  for (std::string& line : lines) line = bold(line, style);
  return lines;
}

Lines memory_lines(const PlanReport& report, TerminalStyle style) {
  style.width = std::min(style.width, kPlanBarWidth);
  return bar_lines(memory_bar(report), style);
}

Lines lever_lines(const PlanReport& report, const TerminalStyle& style) {
  const plan::Plan& plan = report.planned->plan;
  if (plan.levers.empty()) return {};
  Lines lines = {fmt::format("{}  {:>5} {:>11} {:>9}  {}", padded("In each step", kLever), "sites", "bytes", "time",
                             "of the step")};
  for (const LeverTotal& total : lever_totals(plan)) {
    lines.push_back(fmt::format(
        "{}  {:>5} {:>11} {:>9}  {}", padded(clip(clean(total.lever, style.unicode), kLever), kLever), total.sites,
        to_string(total.bytes), to_string(total.seconds), percent_text(total.seconds, plan.step)));
  }
  return clipped(lines, style);
}

Lines site_lines(const PlanReport& report, const TerminalStyle& style) {
  const std::vector<plan::LeverUse>& uses = report.planned->plan.levers;
  if (uses.empty()) return {};
  const std::size_t shown = std::min(uses.size(), style.owners.value_or(kSites));
  Lines lines = {shown < uses.size() ? fmt::format("The largest {} of {}:", shown, uses.size()) : "All of them:"};
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(fmt::format("{:>11} {:>9}  {} {}", to_string(uses[i].bytes), to_string(uses[i].seconds),
                                padded(clip(clean(uses[i].lever, style.unicode), kLever), kLever),
                                clean(uses[i].site, style.unicode)));
  }
  return clipped(lines, style);
}

Lines sentence_lines(const PlanReport& report, const TerminalStyle& style) {
  Lines lines;
  add_wrapped(peak_sentence(report), style, lines);
  add_wrapped(least_sentence(report), style, lines);
  return lines;
}

// Returns "####++": # for the time that no plan can avoid, + for what this plan adds.
std::string curve_bar(const plan::Plan& plan, double most, std::size_t cells) {
  if (most <= 0) return "";
  const auto upto = [&](double seconds) {
    return static_cast<std::size_t>(std::lround(seconds / most * static_cast<double>(cells)));
  };
  const std::size_t all = upto(plan.overhead.count);
  const std::size_t bound = std::min(all, upto(plan.bound.value_or(Seconds{}).count));
  return std::string(bound, '#') + std::string(all - bound, '+');
}

Lines curve_lines(const PlanReport& report, const TerminalStyle& style) {
  if (report.curve.empty()) return {};
  double most = 0;
  for (const plan::Plan& plan : report.curve) most = std::max(most, plan.overhead.count);
  const std::size_t cells = std::min<std::size_t>(style.width - std::min(style.width - 8, 50u), 40);
  Lines lines;
  add_wrapped("Budget against time; #: the least time any plan adds, +: what this plan adds beyond that", style, lines);
  lines.push_back(fmt::format("{:>10} {:>11} {:>9} {:>9}", "--memory", "tensors", "time", "at least"));
  for (const plan::Plan& plan : report.curve) {
    const bool planned = plan.outcome != plan::Plan::Outcome::Infeasible;
    lines.push_back(fmt::format("{:>10} {:>11} {:>9} {:>9}  {}", as_option(report.beside.memory_for(plan.budget)),
                                to_string(plan.budget), planned ? percent_text(plan.overhead, plan.step) : "no plan",
                                planned && plan.bound ? percent_text(*plan.bound, plan.step) : "-",
                                planned ? curve_bar(plan, most, cells) : ""));
    while (lines.back().ends_with(' ')) lines.back().pop_back();
  }
  return clipped(lines, style);
}

std::string outcome_text(const ComparedWay& way) {
  if (!way.allowed) return "not allowed";
  switch (way.outcome) {
    case plan::Plan::Outcome::Fits:
      return "fits";
    case plan::Plan::Outcome::Planned:
      return "plan " + percent_text(way.overhead, way.step);
    case plan::Plan::Outcome::Infeasible:
      break;
  }
  return "needs " + as_option(way.least);
}

// Returns a row for each recording: whether it fits, the time of a step with its plan, and the peak of its tensors when
// it was recorded.
Lines way_lines(const PlanReport& report, const TerminalStyle& style) {
  if (report.ways.empty()) return {};
  Lines lines;
  add_wrapped(choice_sentence(report), style, lines);
  lines.push_back(
      fmt::format("  {:<9} {:<16} {:>11} {:>11}  {}", "results", "memory", "a step", "tensors", "recorded with"));
  for (const ComparedWay& way : report.ways) {
    const bool timed = way.allowed && way.outcome != plan::Plan::Outcome::Infeasible;
    lines.push_back(fmt::format("{} {:<9} {:<16} {:>11} {:>11}  {}", way.chosen ? '>' : ' ', plan::word_of(way.results),
                                outcome_text(way), timed ? to_string(way.seconds()) : "-", to_string(way.plain_peak),
                                clean(way_text(way), style.unicode)));
  }
  return clipped(lines, style);
}

}  // namespace

void write_terminal(const PlanReport& report, const TerminalStyle& asked, const std::string& next, std::ostream& out) {
  TerminalStyle style = asked;
  style.width = std::clamp(style.width, 40u, 120u);
  std::vector<Lines> sections;
  if (report.planned) {
    sections = {way_lines(report, style),   headline(report, style),   memory_lines(report, style),
                lever_lines(report, style), site_lines(report, style), sentence_lines(report, style)};
  }
  sections.push_back(curve_lines(report, style));
  // A command is never wrapped, so that it can be copied.
  if (!next.empty()) sections.push_back({"next: " + clean(next, style.unicode)});
  bool first = true;
  for (const Lines& section : sections) {
    if (section.empty()) continue;
    if (!first) out << '\n';
    first = false;
    for (const std::string& line : section) out << line << '\n';
  }
}

}  // namespace ullage::report
