// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run --dry` and `ullage predict --device CARD -- COMMAND`: runs a CUDA program on a machine without a card.

#include "ullage/cli/predict_command.h"
#include "ullage/cli/run_command.h"
#include "ullage/cli/streams.h"

namespace ullage::cli {

// For --dry without --memory; with --memory, run_run() runs the program. Runs the program to its end and shows its
// output. Returns the program's exit code. If that is 0, returns 1 if a file could not be written. If the program was
// not started, returns one of Ullage's own codes.
int run_dry(const RunOptions& options, Streams streams);

// Returns whether a dry run answers this question. The target must be a command and the device not "cpu". In addition,
// one of three things must hold. No size is varied, which only a dry run can answer. Or a card of the table is named.
// Or the command's torch is a CUDA build.
bool predicts_dry(const PredictOptions& options);

// Writes the answer to `out`. Returns the exit code.
int predict_dry(const PredictOptions& options, Streams streams);

}  // namespace ullage::cli
