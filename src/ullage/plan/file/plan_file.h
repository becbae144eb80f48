// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes and reads a plan as a file (docs/cli.md, "The plan as JSON"). The file has figures for a person. It also has
// what a run needs to follow the plan in the same program: the step's ops and values (Sites), and the schedule. A new
// field is added here, to plan_file.cpp and to plan_file_reader.cpp.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::plan {

// The part of a step by which a run recognises its ops and values; no names, times or bytes.
struct Sites {
  struct Op {
    std::uint64_t key = 0;                     // a hash of the op's name and inputs (model/site_key.h)
    std::vector<ValueIndex> reads, makes;      // as in StepOp
    std::size_t overwrites = 0;                // how many of `makes`, the first ones, replace values in place
    std::vector<std::uint32_t> unread;         // indices into `reads` of inputs that the kernel does not look at
    std::vector<ValueIndex> batch_norm_reads;  // what recomputing a batch norm's output reads; empty for other ops
    // All that it reads and makes is too small to move. If the schedule does not need the op, a run passes over it.
    bool small = false;
    friend bool operator==(const Op&, const Op&) = default;
  };
  Table<OpIndex, Op> ops;
  // How many values the step has. A file has one more than the highest index in it, which may be less.
  std::uint64_t values = 0;
  // For each storage that a step leaves to the next one: its last value in a step, and its first value in the next.
  std::vector<std::pair<ValueIndex, ValueIndex>> carried;
  friend bool operator==(const Sites&, const Sites&) = default;
};
Sites sites_of(const Step& step);

struct PlanFile {
  Plan plan;
  Sites sites;
  std::string torch;                 // the version that the step was recorded with
  std::vector<std::string> command;  // the recorded program's
  std::uint64_t seed = 1;            // of the search
  Bytes memory{};                    // of the whole process; `plan.budget` is the part for tensors; zero: not stated
  std::string device = "cpu";        // the device whose bytes these are, as in trace::TraceFile
};

// Writes one JSON object with each field and list item on a line of its own.
void write_plan(const PlanFile& file, std::ostream& out);
// Reads what write_plan() wrote. `name` is the file's, for messages. BadFile, with the place, if the text is no plan,
// is of another version, or contradicts itself.
Result<PlanFile> read_plan(std::string_view text, const std::string& name);

}  // namespace ullage::plan
