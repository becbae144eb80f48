// SPDX-License-Identifier: Apache-2.0
#pragma once

// The program: turns files of weights and prompts into a picture.

#include "ullage/base/exit_code.h"
#include "vqgan_clip/options.h"

#include <iosfwd>

namespace ullage::vqgan_clip {

// Does what the options ask. Progress and errors go to `out`; `terminal` says that a person watches it. Returns
// Infeasible if memory ran out. Returns Interrupted if it was asked to stop; the last picture is then written.
ExitCode run_vqgan_clip(const Options& options, std::ostream& out, bool terminal);

}  // namespace ullage::vqgan_clip
