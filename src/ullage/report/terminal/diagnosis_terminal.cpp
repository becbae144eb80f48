// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/terminal/terminal_bar.h"
#include "ullage/report/terminal/terminal_sections.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

namespace ullage::report {
namespace {

// How much of each section is shown, from the longest answer to the shortest. fitted_lines() takes the first that fits
// a screen. Each drops what a person misses least; the last always fits.
constexpr std::array<Measure, 10> kMeasures = {{
    {8, 5, 6, 6, 3, 4},
    {8, 4, 4, 5, 2, 3},
    {8, 4, 3, 5, 2, 2},
    {8, 3, 3, 4, 2, 2},
    {6, 3, 3, 4, 1, 2},
    {6, 3, 2, 3, 1, 1},
    {5, 3, 2, 3, 1, 1},
    {4, 3, 1, 3, 0, 1},
    {3, 2, 1, 2, 0, 0},
    {1, 1, 1, 1, 0, 0},
}};
// How much is shown of each diagnosis if there are several.
constexpr Measure kCompact = {3, 2, 1, 2, 0, 1};

// Returns all sections, with blank lines between them unless `dense`.
Lines all_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style, bool dense) {
  std::vector<Lines> sections = {headline_lines(diagnosis, style)};
  if (diagnosis.bar) sections.push_back(bar_lines(*diagnosis.bar, style));
  if (diagnosis.peak) sections.push_back(owner_lines(*diagnosis.peak, measure, style));
  sections.push_back(cause_lines(diagnosis, measure, style));
  sections.push_back(remedy_lines(diagnosis, measure, style));
  sections.push_back(note_lines(diagnosis, measure, style));
  sections.push_back(last_lines(diagnosis, style));
  Lines lines;
  for (const Lines& section : sections) {
    if (section.empty()) continue;
    if (!lines.empty() && !dense) lines.emplace_back();
    lines.insert(lines.end(), section.begin(), section.end());
  }
  return lines;
}

Lines fitted_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style) {
  // Rows of owners that the person asked for are shown in addition to what fits.
  const std::size_t asked = style.owners.value_or(0);
  const std::size_t extra = asked > kMeasures.front().owners ? asked - kMeasures.front().owners : 0;
  Lines lines;
  for (Measure measure : kMeasures) {
    if (style.owners) measure.owners = asked;
    // Once at most two lines of evidence are left, blank lines are dropped before anything else.
    for (const bool dense : {false, true}) {
      lines = all_lines(diagnosis, measure, style, dense);
      if (lines.size() <= kScreenLines + extra) return lines;
      if (measure.evidence > 2) break;
    }
  }
  return lines;
}

TerminalStyle sane(TerminalStyle style) {
  style.width = std::clamp(style.width, 40u, 120u);
  return style;
}

void write(const Lines& lines, std::ostream& out) {
  for (const std::string& line : lines) out << line << '\n';
}

}  // namespace

void write_terminal(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style, std::ostream& out) {
  write(fitted_lines(diagnosis, sane(style)), out);
}

void write_terminal(const std::vector<diagnose::Diagnosis>& diagnoses, const TerminalStyle& style, std::ostream& out) {
  if (diagnoses.size() == 1) return write_terminal(diagnoses.front(), style, out);
  const TerminalStyle used = sane(style);
  std::size_t number = 0;
  for (const diagnose::Diagnosis& diagnosis : diagnoses) {
    Measure measure = kCompact;
    if (used.owners) measure.owners = *used.owners;
    if (number > 0) out << '\n';
    out << fmt::format("--- {} of {} ---\n", ++number, diagnoses.size());
    diagnose::Diagnosis one = diagnosis;
    // What is the same for all diagnoses is shown once, at the end.
    if (number < diagnoses.size() && one.next == diagnoses.back().next) one.next.clear();
    if (number < diagnoses.size() && one.to_know_more == diagnoses.back().to_know_more) one.to_know_more.clear();
    write(all_lines(one, measure, used, true), out);
  }
}

}  // namespace ullage::report
