// SPDX-License-Identifier: Apache-2.0
#pragma once

// in_python.py as text: what a Python of a dry run does beside its program. The launcher writes it into a file, whose
// name libullage_preload.so finds in ULLAGE_DRYCARD_SCRIPT.

#include <string_view>

namespace ullage::drycard {

extern const std::string_view kInPython;

}  // namespace ullage::drycard
