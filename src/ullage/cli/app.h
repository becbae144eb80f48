// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole command line: finds the verb (run, predict, advise, plan, explain, help), parses its options and runs it.
// A new verb is added in app.cpp.

#include "ullage/cli/streams.h"

#include <string>
#include <vector>

namespace ullage::cli {

// Runs the command line `words`: the arguments without the program's own name. Returns the exit code.
int run_ullage(const std::vector<std::string>& words, Streams streams);

}  // namespace ullage::cli
