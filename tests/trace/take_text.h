// SPDX-License-Identifier: Apache-2.0
#pragma once

// A take as lines of text, every field of it: two takes are the same when their lines are. And what holds of any take.

#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ullage::trace::test {

std::vector<std::string> lines_of(const Take& take);
std::vector<std::string> lines_of(const TraceFile& file);

// Empty, or what an invariant of trace.h and take.h is broken by.
std::string broken_invariant(const Take& take);

std::string written(const TraceFile& file);
Result<TraceFile> read_text(const std::string& content);

}  // namespace ullage::trace::test
