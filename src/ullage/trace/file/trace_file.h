// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file `*.ullage`. It has a version, and a checksum for each part. It is read as a whole or refused.
// docs/trace_file.md describes its bytes.

#include "ullage/base/result.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace ullage::trace {

// The first bytes of such a file in every version.
inline constexpr std::string_view kTraceFileMagic = "ULLAGE TRACE ";

// Reads a file. BadFile says which part is cut off or damaged, or which version it has; `name` is used in messages. No
// file can make this take more memory than 1 MiB plus a fixed multiple of the file's size (Allowance in take_reader.h).
Result<TraceFile> read_trace_file(std::span<const std::byte> content, const std::string& name);

// Writes the takes as the recorder would. read_trace_file() gives the same takes again, with three exceptions. The file
// has no addresses, so the reader makes some up. It has no stacks. Names are cut after 240 bytes. Throws ContractError
// if storages or ops are out of order. Storages that were live before the take come first, then the others in the order
// of their births; ops are in the order of their begins. The caller checks if `out` failed.
void write_trace_file(const TraceFile& file, std::ostream& out);

}  // namespace ullage::trace
