// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts around a diagnosis: one line that says what happened, what to record to be sure, the next command, notes.
// For a take of Ullage's own trace take_words.h has them.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <string>
#include <vector>

namespace ullage::diagnose {

std::string headline_of(const Evidence& evidence);

// Returns what this kind of input cannot show, and how to record it. Empty if the first cause has a confidence of 0.9
// or more, or if a further recording would not help.
std::string to_know_more(const Evidence& evidence, const std::vector<Cause>& causes);

// Returns how to record a snapshot on a CUDA device.
std::string how_to_record();

std::string next_command(const Evidence& evidence, const std::string& file);

// Returns notes that a person should read before trusting the figures.
std::vector<std::string> notes_of(const Evidence& evidence, const std::vector<Cause>& causes);

}  // namespace ullage::diagnose
