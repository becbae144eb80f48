// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a page that need no script: what is said of one diagnosis, as elements.

#include "ullage/diagnose/diagnosis.h"

#include <string>

namespace ullage::report {

std::string html_headline(const diagnose::Diagnosis& diagnosis);
std::string html_bar(const diagnose::Bar& bar);
std::string html_causes(const diagnose::Diagnosis& diagnosis);
std::string html_remedies(const diagnose::Diagnosis& diagnosis);
// The peak's owners, all of them; the rows beyond the first ones stand in an element that opens.
std::string html_owners(const diagnose::Peak& peak);
// What autograd keeps, by layer; empty where it keeps nothing.
std::string html_saved(const diagnose::Saved& saved);
// Notes, what to record, the next command.
std::string html_last(const diagnose::Diagnosis& diagnosis);

}  // namespace ullage::report
