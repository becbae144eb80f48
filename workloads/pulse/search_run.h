// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: turns files of weights and pictures into a folder of faces.

#include "pulse/options.h"
#include "ullage/base/exit_code.h"

#include <iosfwd>

namespace ullage::pulse {

// Does what the options ask. Progress, results and errors go to `out`; `terminal` says that a person watches it.
// Returns Failed if a search did not reach eps and --keep-best was not given, and Infeasible if memory ran out.
ExitCode run_pulse(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::pulse
