// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file, or replaces it, in one step: writes under a temporary name in the same folder, then renames. Readers
// see the old file or the whole new one, never a part. If `path` is a link, the link is replaced. The new file has the
// permissions of any new file. Nothing is forced to disk (fsync).

#include "ullage/base/result.h"

#include <functional>
#include <iosfwd>
#include <string>

namespace ullage {

// Lets `writer` fill the new file, then puts it at `path`. If anything fails, `path` is unchanged and the temporary
// file is removed, also if the writer throws. Returns the writer's own error, or System with the path as `where` if the
// operating system refused.
Status replace_file(const std::string& path, const std::function<Status(std::ostream&)>& writer);

// The name that the new file has before it is renamed: `path` and the process id. To test beforehand whether writing is
// allowed, a caller can create a file of this name; replace_file() then overwrites it. Two threads of a process must
// not replace the same file at once, because they would use the same name.
std::string name_before(const std::string& path);

}  // namespace ullage
