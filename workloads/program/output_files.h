// SPDX-License-Identifier: Apache-2.0
#pragma once

// Folders and files that programs write into: tried before the work, and never half written.

#include "ullage/base/result.h"

#include <string>

namespace ullage::program {

// Makes the folder if it is not there, and tries to write a file in it: BadArgument when that fails, advising another
// --out.
Status make_writable(const std::string& folder);

// Writes `text` to a new file, brings it to the disk and renames it to `path`. On failure `path` is as it was.
Status write_whole_file(const std::string& path, const std::string& text);

// What is said of a file that the system does not let us write; `error` is an errno.
Error cannot_write(const std::string& path, int error);

}  // namespace ullage::program
