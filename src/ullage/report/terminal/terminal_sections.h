// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sections of a diagnosis for the terminal, each as lines that fit its width. The caller says how much each may
// show. If owners, causes, remedies or notes are left out, the section ends with a line that counts them. Lines of
// evidence and of why are left out without a count. A section with nothing to show has no lines.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/terminal/terminal_text.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ullage::report {

// How much of each section is shown.
struct Measure {
  std::size_t owners = 8;
  std::size_t causes = 4;
  std::size_t evidence = 3;  // lines of text for each cause, wrapped lines included
  std::size_t remedies = 5;
  std::size_t why = 1;  // lines of text below each remedy
  std::size_t notes = 3;
};

Lines headline_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style);
Lines owner_lines(const diagnose::Peak& peak, const Measure& measure, const TerminalStyle& style);
// A row for each of the first `most` owners, which are sorted by size, and one with the sum of the others. `all`: the
// bytes of all owners together.
Lines owner_rows(std::span<const trace::Owner> owners, std::size_t most, Bytes all, const TerminalStyle& style);
Lines cause_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
Lines remedy_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
Lines note_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
// What to record to be sure of the diagnosis ("to be sure: "), and the next command ("next: ", never wrapped).
Lines last_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style);

// "GPU 0 held at most 1.00 GiB, GPU 1 held at most 9.00 GiB and refused 2.00 GiB".
std::string devices_in_words(const std::vector<diagnose::DeviceShare>& devices);
// Returns "almost certain" (from 0.9 on), "likely" (0.65), "as likely as not" (0.4), "possible" (0.15) or "unlikely".
const char* in_words(double confidence);
// Returns "simulated", "computed" or "known practice".
const char* name(diagnose::Basis basis);

}  // namespace ullage::report
