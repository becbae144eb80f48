// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tries other values of a shipped program's options. Each peak is predicted from takes at small sizes, as `ullage
// predict PROGRAM` does it.

#include "ullage/cli/advise_runs.h"
#include "ullage/cli/take_runner.h"

#include <memory>
#include <string>
#include <vector>

namespace ullage::cli {

// `words` are the program's name and its arguments. A run fits if the process needs at most `memory` bytes. `progress`
// must outlive the result.
std::unique_ptr<AdviseRuns> rehearsed_runs(TakeRunner runner, std::vector<std::string> words, Bytes memory,
                                           Progress& progress);

}  // namespace ullage::cli
