// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replaces a file in one step: writes under a temporary name in the same folder, then renames. Readers see the old file
// or the whole new one, never a part.

#include "ullage/base/result.h"

#include <functional>
#include <iosfwd>
#include <string>

namespace ullage {

// Lets `writer` fill the new file, then puts it at `path`. If anything fails, `path` is unchanged and the temporary
// file is removed. Returns the writer's own error, or System with the path as `where` if the operating system refused.
Status replace_file(const std::string& path, const std::function<Status(std::ostream&)>& writer);

// The temporary name, which contains the process id. A caller can create it beforehand to test if writing is allowed.
std::string name_before(const std::string& path);

}  // namespace ullage
