// SPDX-License-Identifier: Apache-2.0
#pragma once

// The text of python/ullage/_watch.py. Each Python process below `ullage explain -- COMMAND` runs it at the end of
// `import torch`. The launcher writes it into a file. libullage_preload.so runs this file; its path is in
// ULLAGE_EXPLAIN_SCRIPT.

#include <string_view>

namespace ullage::cli {

extern const std::string_view kWatchScript;

}  // namespace ullage::cli
