// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file under a new name beside it and renames it: whoever looks sees the old file or the new one, never half
// of one.

#include "ullage/base/result.h"

#include <functional>
#include <iosfwd>
#include <string>

namespace ullage {

// On failure, the writer's own included, the old file, if any, is untouched and nothing is left behind. System: the
// operating system refused; `where` is the path.
Status replace_file(const std::string& path, const std::function<Status(std::ostream&)>& writer);

// The name it is written under until then, one for each process: to try beforehand whether that can be made.
std::string name_before(const std::string& path);

}  // namespace ullage
