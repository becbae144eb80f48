// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: turns a file of weights and pictures into larger pictures.

#include "ullage/base/exit_code.h"
#include "upscale/options.h"

#include <iosfwd>

namespace ullage::upscale {

// Does what the options ask. Progress, results and errors go to `out`; `terminal` says that a person watches it.
// Returns Infeasible if memory ran out.
ExitCode run_upscale(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::upscale
