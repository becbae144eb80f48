// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes and reads a plan as a file (docs/cli.md, "plan"). It has the figures for a person. It has the two parts that a
// run needs to follow the plan in the same program: the keys of the step's ops, and the schedule.

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
    std::uint64_t key = 0;
    std::vector<ValueIndex> reads, makes;
    std::size_t overwrites = 0;
    std::vector<std::uint32_t> unread;
    std::vector<ValueIndex> batch_norm_reads;  // empty if it has no batch_norm
    bool small = false;  // all that it reads and makes is too small to move, so a plan need not follow it
    friend bool operator==(const Op&, const Op&) = default;
  };
  Table<OpIndex, Op> ops;
  std::uint64_t values = 0;  // how many the step has; in a file, one more than the highest that it names
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
  Bytes memory{};                    // of the process; `plan.budget` is its part for tensors; zero if not stated
  std::string device = "cpu";        // whose bytes these are, as in trace::TraceFile
};

// Writes one JSON object with each field and list item on a line of its own.
void write_plan(const PlanFile& file, std::ostream& out);
// Reads what write_plan() wrote; `name` is the file's, for messages. BadFile, with the place: it is not a plan, is of
// another version, or contradicts itself.
Result<PlanFile> read_plan(std::string_view text, const std::string& name);

}  // namespace ullage::plan
