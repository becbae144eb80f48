// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out the answer of `ullage advise`. Runs the program as it is, then with each remedy that applies, and searches
// the largest size that fits. If no remedy makes the program fit, searches a set of remedies that does. Dry runs go
// side by side.

#include "ullage/advise/advice.h"
#include "ullage/cli/advise_runs.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/trial_runner.h"
#include "ullage/diagnose/diagnosis.h"

#include <iosfwd>
#include <variant>
#include <vector>

namespace ullage::cli {

// Adds a row for each of explain's remedies that `advice` has no row for.
void add_computed_rows(const std::vector<diagnose::Remedy>& remedies, advise::Advice& advice);

// Writes warnings to `err`. Returns the run that stopped it, if there is no answer: the program failed, or a signal
// came.
std::variant<advise::Advice, Tried> advise_on(AdviseRuns& runs, const AdviseQuestion& question, Progress& progress,
                                              std::ostream& err);

}  // namespace ullage::cli
