// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line as a whole: finds the verb and hands on to it.

#include "ullage/cli/streams.h"

#include <string>
#include <vector>

namespace ullage::cli {

// `words` are those behind "ullage". Returns the exit code.
int run_ullage(const std::vector<std::string>& words, Streams streams);

}  // namespace ullage::cli
