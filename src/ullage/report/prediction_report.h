// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a prediction for people and for programs. docs/cli.md has the fields of the JSON.

#include "ullage/predict/prediction.h"
#include "ullage/report/diagnosis_report.h"

#include <ostream>
#include <string>

namespace ullage::report {

// Writes about twenty lines. `next` is the command to show at the end; empty: none. All names in a prediction are
// untrusted.
void write_terminal(const predict::Prediction& prediction, const TerminalStyle& style, const std::string& next,
                    std::ostream& out);

// Writes one object and a line end.
void write_json(const predict::Prediction& prediction, std::ostream& out);

// Returns "batch=128, size=256"; "the sizes it ran with" if nothing is varied.
std::string sizes_text(const std::vector<Knob>& at);
// Returns "exact", "bound" or "none".
const char* name(predict::Law law);

}  // namespace ullage::report
