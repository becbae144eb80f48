// SPDX-License-Identifier: Apache-2.0
#pragma once

// Output folders and files: folders are tested before the work begins, and no file is left half written.

#include "ullage/base/result.h"

#include <string>

namespace ullage::program {

// Makes the folder if it is missing, and tries to write a file in it. BadArgument if that fails, with the advice to
// choose another --out.
Status make_writable(const std::string& folder);

// Writes `text` to a new file, brings it to the disk and renames it to `path`. On failure `path` is as it was.
Status write_whole_file(const std::string& path, const std::string& text);

// Returns the error (System) for a file that cannot be written; `error` is an errno.
Error cannot_write(const std::string& path, int error);

}  // namespace ullage::program
