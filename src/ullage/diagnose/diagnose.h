// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns an input into diagnoses. A log gives one for each error and each memory_summary table. A snapshot or profile
// gives one for each device, and a trace one for each take. Of a snapshot's devices, those on which a request failed at
// the moment that is diagnosed come first, the latest failure before the others.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct Question {
  std::string file;  // copied to Source
  // If set: leaves out other devices, errors that name no device, and every trace. A profile's CPU has number 0.
  std::optional<unsigned> device;
  std::optional<trace::At> at;  // none: the last out-of-memory event if there is one, else the peak
  // `ullage explain -- COMMAND` made the snapshot. Then Diagnosis::to_know_more names --events, not calls to record.
  bool watched = false;
};

// Empty if the input has nothing about the device asked for, or no such moment.
std::vector<Diagnosis> diagnose(const trace::Recording& recording, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Log& log, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Profile& profile, const Question& question);
std::vector<Diagnosis> diagnose(const trace::UnderstoodFile& file, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Input& input, const Question& question);

}  // namespace ullage::diagnose
