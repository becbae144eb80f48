// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the answer of `ullage advise` for people and for programs. docs/cli.md has the fields of the JSON.

#include "ullage/advise/advice.h"
#include "ullage/report/diagnosis_report.h"

#include <cstddef>
#include <iosfwd>

namespace ullage::report {

// Writes what the program needs, then a row for each remedy, at most `top` of them (0: all); what is left out is
// counted. All text of the program is untrusted.
void write_terminal(const advise::Advice& advice, const TerminalStyle& style, std::size_t top, std::ostream& out);

// Writes "ullage-advice", version 1: one object and a line end. It has every row.
void write_json(const advise::Advice& advice, std::ostream& out);

// Writes one page that needs no network. It shows the curves of the plain program and of the first six rows that have
// one, over each other, and every row.
void write_html(const advise::Advice& advice, std::ostream& out);

}  // namespace ullage::report
