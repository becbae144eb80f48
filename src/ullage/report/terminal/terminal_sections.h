// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of what the terminal is told of one diagnosis, each as lines that are fit for it. How much each part may
// take is the caller's to say; what a part leaves out it counts in a line of its own.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/report/diagnosis_report.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::report {

using Lines = std::vector<std::string>;

// How much of each part is told.
struct Measure {
  std::size_t owners = 8;
  std::size_t causes = 4;
  std::size_t evidence = 3;  // lines of text for each cause, wrapped ones counted
  std::size_t remedies = 5;
  std::size_t why = 1;  // lines of text below each remedy
  std::size_t notes = 3;
};

Lines headline_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style);
Lines owner_lines(const diagnose::Peak& peak, const Measure& measure, const TerminalStyle& style);
Lines cause_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
Lines remedy_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
Lines note_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style);
// What to record, and the next command.
Lines last_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style);

// "almost certain", "likely", "as likely as not", "possible", "unlikely".
const char* in_words(double confidence);
// "simulated", "computed", "known practice".
const char* name(diagnose::Basis basis);

}  // namespace ullage::report
