// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: from files of weights and prompts to a picture.

#include "ullage/base/exit_code.h"
#include "vqgan_clip/options.h"

#include <iosfwd>

namespace ullage::vqgan_clip {

// Does all that the options ask. Progress and errors go to `out`; `terminal` says that a person watches it. Lack of
// memory is Infeasible; Interrupted leaves the last picture.
ExitCode run_vqgan_clip(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::vqgan_clip
