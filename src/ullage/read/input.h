// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads any file that `ullage explain` is given. The content decides what kind of file it is, never the name.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <span>
#include <string>

namespace ullage::read {

// Reads `content`, unzipping it if it is gzip. BadFile with `name:offset` if it is damaged or of no known kind. Also
// BadFile if it is text with neither an out-of-memory error nor a memory summary. The error then names no offset,
// unless the text is JSON. For what was unzipped the name is "NAME (unzipped)", and the offset is in the unzipped
// bytes.
Result<trace::Input> read_input(std::span<const std::byte> content, const std::string& name);

// The same for a file, or for standard input if `path` is "-". Errors: NotFound, BadFile, System.
Result<trace::Input> read_input_file(const std::string& path);

// Works out the meaning of each take of a trace that was read already.
trace::UnderstoodFile understood(trace::TraceFile file);

}  // namespace ullage::read
