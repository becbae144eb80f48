// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run --dry` and `ullage predict --device CARD -- COMMAND`: a CUDA program with no card.

#include "ullage/cli/predict_command.h"
#include "ullage/cli/run_command.h"
#include "ullage/cli/streams.h"

namespace ullage::cli {

// Runs the program to its end, its output shown. Returns its exit code.
int run_dry(const RunOptions& options, Streams streams);

// Is it the dry card that answers? It does where a command's torch is a CUDA build, and where a card of the table is
// named or no sizes are given, so that nothing else could.
bool predicts_dry(const PredictOptions& options);

// Returns the exit code. The answer goes to `out`.
int predict_dry(const PredictOptions& options, Streams streams);

}  // namespace ullage::cli
