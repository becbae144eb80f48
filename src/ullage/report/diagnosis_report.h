// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes diagnoses for the terminal, as JSON (docs/cli.md), and as one self-contained HTML page. All text from a file
// is untrusted. Each writer makes harmless what its reader would take for a command (escape sequences, markup).

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

namespace ullage::report {

struct TerminalStyle {
  bool colors = false;
  bool unicode = false;  // the terminal shows UTF-8
  unsigned width = 80;   // columns; values outside 40 to 120 count as the nearer of the two
  // Rows of the peak's table (of a plan: named sites). None: 8 of a diagnosis, or fewer to fit the screen; 5 of a
  // prediction, 10 of a plan.
  std::optional<std::size_t> owners;
};

// The most lines of one diagnosis, unless `owners` asks for more rows.
inline constexpr std::size_t kScreenLines = 40;

// Writes a diagnosis that fits a screen of kScreenLines lines. What is left out is counted; --json has everything.
void write_terminal(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style, std::ostream& out);

// Writes one diagnosis as above. If there are several, each gets about ten lines, under a line such as "--- 1 of 3
// ---". A next command, or what to record, that equals the last diagnosis's is shown only there.
void write_terminal(const std::vector<diagnose::Diagnosis>& diagnoses, const TerminalStyle& style, std::ostream& out);

// Writes one object and a line end: the first diagnosis, with the others in its field "more". There must be one; so
// also for write_html().
void write_json(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

// Writes one page that needs no network. If the input has a history, the page has a timeline (html_timeline.h).
void write_html(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

}  // namespace ullage::report
