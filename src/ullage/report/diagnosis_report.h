// SPDX-License-Identifier: Apache-2.0
#pragma once

// Diagnoses for the terminal, as JSON (docs/cli.md) and as one self-contained HTML page. All text that came from a file
// is untrusted: each writer neutralises what its reader would take for a command (escape sequences, markup).

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

namespace ullage::report {

struct TerminalStyle {
  bool colors = false;
  bool unicode = false;               // the terminal shows UTF-8
  unsigned width = 80;                // columns; below 40 counts as 40
  std::optional<std::size_t> owners;  // rows of the peak's table, the rest is one row; none: 8, fewer to fit the screen
};

// The most lines of one diagnosis, unless `owners` asks for more.
inline constexpr std::size_t kScreenLines = 40;

// One diagnosis fits a screen of kScreenLines lines: what is left out is counted, and --json has it all.
void write_terminal(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style, std::ostream& out);

// One: as above. Several: each told in some ten lines, under a line that says how many there are.
void write_terminal(const std::vector<diagnose::Diagnosis>& diagnoses, const TerminalStyle& style, std::ostream& out);

// One object and a line end: the first diagnosis, the others in its field "more".
void write_json(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

// One page that needs no network. With a history it holds a timeline; see html_timeline.h.
void write_html(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

}  // namespace ullage::report
