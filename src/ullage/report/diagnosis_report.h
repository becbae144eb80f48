// SPDX-License-Identifier: Apache-2.0
#pragma once

// A diagnosis for the terminal, as JSON (docs/cli.md) and as one self-contained HTML page.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <cstddef>
#include <iosfwd>
#include <vector>

namespace ullage::report {

struct TerminalStyle {
  bool colors = false;
  unsigned width = 80;     // columns
  std::size_t owners = 8;  // rows of the peak's table; the rest is one row
};

// Fits a screen of 40 lines for one diagnosis.
void write_terminal(const diagnose::Diagnosis& diagnosis, const trace::Input& input, const TerminalStyle& style,
                    std::ostream& out);

// One object and a line end: the first diagnosis, the others in its field "more".
void write_json(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

// One page that needs no network.
void write_html(const std::vector<diagnose::Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out);

}  // namespace ullage::report
