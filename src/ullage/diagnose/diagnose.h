// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns an input into diagnoses. A log gives one for each error and each memory_summary table. A snapshot or profile
// gives one for each device, and a trace one for each take. A snapshot's devices are ordered: those on which a request
// failed come first, the latest failure before all others.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct Question {
  std::string file;                // copied to Source
  std::optional<unsigned> device;  // diagnose only this device, and no error that names none; a trace has no devices
  std::optional<trace::At> at;     // none: the out-of-memory event if there is one, else the peak
  bool watched = false;            // `ullage explain -- COMMAND` recorded it, with the stacks that it can have
};

// Empty if the input has nothing about the device asked for, or no such moment.
std::vector<Diagnosis> diagnose(const trace::Recording& recording, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Log& log, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Profile& profile, const Question& question);
std::vector<Diagnosis> diagnose(const trace::UnderstoodFile& file, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Input& input, const Question& question);

}  // namespace ullage::diagnose
