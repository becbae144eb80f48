// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: from files of weights and pictures to a folder of faces.

#include "pulse/options.h"
#include "ullage/base/exit_code.h"

#include <iosfwd>

namespace ullage::pulse {

// Does all that the options ask. Progress, results and errors go to `out`; `terminal` says that a person watches it.
// Failed when a search did not reach eps and its best face was not asked for; lack of memory is Infeasible.
ExitCode run_pulse(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::pulse
