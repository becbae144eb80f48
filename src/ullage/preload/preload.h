// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions that the two halves of libullage_preload.so (preload.cpp, python_import.cpp) call of each other, and
// the one that it exports.

namespace ullage::preload {

// Opens the runtime if torch is mapped and the runtime is not. If it cannot be opened, prints why on stderr. May be
// called on any thread, and more than once.
void bring_in_the_runtime();

// Returns the file that a Python is to run after `import torch` in a dry run (drycard/in_python.py); null if this is no
// dry run.
const char* dry_script();

// To be called before Python starts. If the process holds a Python, has the runtime brought in, or that file run, as
// soon as `import torch` is done. Otherwise does nothing.
void wait_for_import_of_torch();

}  // namespace ullage::preload

// For ullage.run() of the Python package, in a process that `ullage run` did not start. Opens the runtime, which needs
// torch to be mapped. Returns null, or why it cannot be opened (valid until the next call).
extern "C" __attribute__((visibility("default"))) const char* ullage_open_runtime();
