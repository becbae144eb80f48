// SPDX-License-Identifier: Apache-2.0
#pragma once

// in_python.py and values.py as text: what a Python of a dry run does beside its program. The launcher writes them into
// files. libullage_preload.so finds the name of the first in ULLAGE_DRYCARD_SCRIPT, which finds the second's.

#include <string_view>

namespace ullage::drycard {

extern const std::string_view kInPython, kValues;

}  // namespace ullage::drycard
