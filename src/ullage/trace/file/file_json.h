// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a trace file that are JSON: one at the beginning of the file, one before and one after each take.

#include "ullage/trace/file/packed_events.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {

struct TakeHead {
  std::vector<Knob> knobs;
  std::uint64_t first_storage = 0;  // id of the take's first allocation; storages from before have lower ids
  std::uint64_t first_op = 0;       // id of the take's first op
};
struct TakeEnd {
  ProcessFigures process;
  Take::End why = Take::End::Program;
  std::uint64_t events = 0;  // of the take; those that were lost in gaps count too
};

// Invalid UTF-8 in texts is replaced by U+FFFD.
std::string head_json(const TraceFile& file);
std::string take_json(const TakeHead& take);
std::string take_end_json(const TakeEnd& end);

// Each returns what is wrong with the JSON, or none. read_head() leaves the takes alone.
std::optional<std::string> read_head(std::string_view json, TraceFile& file);
std::optional<std::string> read_take(std::string_view json, TakeHead& take);
std::optional<std::string> read_take_end(std::string_view json, TakeEnd& end);

}  // namespace ullage::trace
