// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: trains from a folder of pictures into a folder of results, until its steps are done or it is asked to
// stop.

#include "dcgan/options.h"
#include "ullage/base/exit_code.h"

#include <iosfwd>

namespace ullage::dcgan {

// Does what the options ask. Progress, warnings and errors go to `out`; `terminal` says that a person watches it. Every
// error becomes an exit code, lack of memory Infeasible; the last checkpoint then stays as it was.
ExitCode run_dcgan(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::dcgan
