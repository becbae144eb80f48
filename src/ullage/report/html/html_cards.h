// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of the page of `ullage explain --html` that need no script. Each function returns HTML elements that show a
// part of one diagnosis.

#include "ullage/diagnose/diagnosis.h"

#include <string>

namespace ullage::report {

std::string html_headline(const diagnose::Diagnosis& diagnosis);
std::string html_bar(const diagnose::Bar& bar);
std::string html_causes(const diagnose::Diagnosis& diagnosis);
std::string html_remedies(const diagnose::Diagnosis& diagnosis);
// All owners at the peak. The rows after the first 20 are in an element that opens.
std::string html_owners(const diagnose::Peak& peak);
// What autograd saves, by layer; empty if it saves nothing.
std::string html_saved(const diagnose::Saved& saved);
// Notes, what to record to know more, the next command.
std::string html_last(const diagnose::Diagnosis& diagnosis);

}  // namespace ullage::report
