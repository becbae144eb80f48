// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: training from a folder of pictures into a folder of results, until its steps are done or it is asked to
// stop.

#include "dcgan/options.h"
#include "ullage/base/exit_code.h"

#include <iosfwd>

namespace ullage::dcgan {

// Does all that the options ask. Progress, warnings and errors go to `out`; `terminal` says that a person watches it.
// Everything bad ends as an exit code, lack of memory as Infeasible, with the last checkpoint as it was.
ExitCode run_dcgan(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::dcgan
