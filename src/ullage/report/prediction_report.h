// SPDX-License-Identifier: Apache-2.0
#pragma once

// A prediction for people and for programs (docs/cli.md has the fields of the JSON).

#include "ullage/predict/prediction.h"
#include "ullage/report/diagnosis_report.h"

#include <ostream>
#include <string>

namespace ullage::report {

// About twenty lines. `next`: the command to name at the end; empty: none. All names in a prediction are untrusted.
void write_terminal(const predict::Prediction& prediction, const TerminalStyle& style, const std::string& next,
                    std::ostream& out);

// One object and a line end.
void write_json(const predict::Prediction& prediction, std::ostream& out);

// "batch=128, size=256"; "this run" where nothing is varied.
std::string sizes_text(const std::vector<Knob>& at);
// "exact", "bound", "none".
const char* name(predict::Law law);

}  // namespace ullage::report
