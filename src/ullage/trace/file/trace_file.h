// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file `*.ullage`: versioned, checked part by part, read whole or refused. docs/trace_file.md describes its bytes.

#include "ullage/base/result.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace ullage::trace {

// What such a file begins with, whatever its version.
inline constexpr std::string_view kTraceFileMagic = "ULLAGE TRACE ";

// BadFile says which part is cut off or damaged, or which version it is; `name` is for messages. Nothing in a file can
// make it take more than a small multiple of the file's size in memory.
Result<TraceFile> read_trace_file(std::span<const std::byte> content, const std::string& name);

// Writes the takes as the recorder would. read_trace_file() of it gives the same again, with addresses made up; names
// are cut after 240 bytes. Storages stand in the order of their births, those from before first; ops in that of their
// begins: ContractError otherwise. Whether `out` failed is for the caller to ask.
void write_trace_file(const TraceFile& file, std::ostream& out);

}  // namespace ullage::trace
