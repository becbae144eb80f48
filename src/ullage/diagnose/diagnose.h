// SPDX-License-Identifier: Apache-2.0
#pragma once

// From an input to diagnoses: one for each error of a log, for each device of a snapshot or profile, for each table,
// for each take of a trace.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct Question {
  std::string file;                // for Source
  std::optional<unsigned> device;  // that device alone; a trace has none
  std::optional<trace::At> at;     // none: the out-of-memory event if there is one, else the peak
};

// Empty when the input has nothing of the device asked for.
std::vector<Diagnosis> diagnose(const trace::Recording& recording, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Log& log, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Profile& profile, const Question& question);
std::vector<Diagnosis> diagnose(const trace::UnderstoodFile& file, const Question& question);
std::vector<Diagnosis> diagnose(const trace::Input& input, const Question& question);

}  // namespace ullage::diagnose
