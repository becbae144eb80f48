// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage explain -- COMMAND`: runs the command as it is, and says why if it runs out of memory. Reads three sources:
// the command's output, torch's figures at a refused request (python/ullage/_watch.py), and the operating system's
// counts if it killed the command.

#include "ullage/cli/explain_command.h"

namespace ullage::cli {

// Writes the answer to `err`, or where `options.out` says; stdout is the command's. Returns the command's own exit
// code, 128 + n for signal n. Returns 1 if the command succeeded but an answer could not be written. Returns WrongUse,
// 126 or 127 if the command was not started, or 1 if files that Ullage needs for the run could not be made.
int run_explained(const ExplainOptions& options, Streams streams);

}  // namespace ullage::cli
