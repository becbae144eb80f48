// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage explain -- COMMAND`: runs the command unchanged and without a budget. If it runs out of memory, says why.
// Reads three sources: the command's output, the snapshot that torch gives when it refuses a request
// (python/ullage/_watch.py), and the operating system's counts if it killed the command.

#include "ullage/cli/explain_command.h"

namespace ullage::cli {

// Writes the answer to `err`, or where `options.out` says; stdout is the command's. Writes none if nothing shows a lack
// of memory. Returns the command's own exit code, 128 + n for signal n. If the command exits with 0 after it caught an
// out-of-memory error, there is an answer too; returns 1 if that cannot be written.
//
// If the command was not started, returns
// - WrongUse (2): the options contradict each other, or a place for the answer cannot be written;
// - 126: the command cannot be started; 127: it does not exist;
// - 1: files that Ullage needs for the run could not be made.
int run_explained(const ExplainOptions& options, Streams streams);

}  // namespace ullage::cli
