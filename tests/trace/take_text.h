// SPDX-License-Identifier: Apache-2.0
#pragma once

// A take as lines of text with every field, so that two takes are equal exactly if their lines are. Also checks what
// holds for any take.

#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ullage::trace::test {

std::vector<std::string> lines_of(const Take& take);
std::vector<std::string> lines_of(const TraceFile& file);

// Returns what breaks an invariant of trace.h or take.h; empty if nothing does.
std::string broken_invariant(const Take& take);

std::string written(const TraceFile& file);
Result<TraceFile> read_text(const std::string& content);

}  // namespace ullage::trace::test
