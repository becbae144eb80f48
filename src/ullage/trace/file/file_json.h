// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a trace file that are JSON: what stands once in the file, once before a take, once behind it.

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
  std::uint64_t first_storage = 0;  // the id that the take's first allocation gets; those from before are below it
  std::uint64_t first_op = 0;
};
struct TakeEnd {
  ProcessFigures process;
  Take::End why = Take::End::Program;
  std::uint64_t events = 0;  // of the take, lost ones too
};

// Texts that are no UTF-8 get replacement characters.
std::string head_json(const TraceFile& file);
std::string take_json(const TakeHead& take);
std::string take_end_json(const TakeEnd& end);

// None, or what is wrong with the JSON. read_head does not look at takes.
std::optional<std::string> read_head(std::string_view json, TraceFile& file);
std::optional<std::string> read_take(std::string_view json, TakeHead& take);
std::optional<std::string> read_take_end(std::string_view json, TakeEnd& end);

}  // namespace ullage::trace
