// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts of in_python.py and values.py. Each Python process of a dry run runs them at the end of `import torch`. The
// launcher writes them into files. libullage_preload.so runs the first, whose path is in ULLAGE_DRYCARD_SCRIPT. The
// first runs the second (ULLAGE_DRYCARD_VALUES).

#include <string_view>

namespace ullage::drycard {

extern const std::string_view kInPython, kValues;

}  // namespace ullage::drycard
