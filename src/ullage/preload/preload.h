// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the two halves of libullage_preload.so know of each other.

namespace ullage::preload {

// Opens the runtime if torch is mapped and the runtime is not. Any thread; more than once does no harm.
void bring_in_the_runtime();

// In a dry run the file that a Python is to run behind `import torch` (drycard/in_python.py); null: this is none.
const char* dry_script();

// In a process that holds a Python: has the runtime brought in, or that file run, as soon as `import torch` is done.
// Elsewhere nothing. Before Python starts.
void wait_for_import_of_torch();

}  // namespace ullage::preload

// For ullage.run() of the Python package, in a process that `ullage run` did not start: opens the runtime where torch
// is mapped. Null, or why it cannot be opened.
extern "C" __attribute__((visibility("default"))) const char* ullage_open_runtime();
