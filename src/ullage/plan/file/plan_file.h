// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan as a file (docs/cli.md, "plan"): what a person reads, and what a run needs to carry it out on the same
// program: the keys of the step's ops and the schedule.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::plan {

// What a run needs of a step to find its ops and values again; no names, times or bytes.
struct Sites {
  struct Op {
    std::uint64_t key = 0;
    std::vector<ValueIndex> reads, makes;
    std::size_t overwrites = 0;
    std::vector<std::uint32_t> unread;
    std::vector<ValueIndex> batch_norm_reads;  // empty: no BatchNorm
    friend bool operator==(const Op&, const Op&) = default;
  };
  Table<OpIndex, Op> ops;
  std::uint64_t values = 0;  // how many there are; in a file those up to the highest that is named in it
  // Of each storage that lives from step to step: its last value of a step, and its first value of the next.
  std::vector<std::pair<ValueIndex, ValueIndex>> carried;
  friend bool operator==(const Sites&, const Sites&) = default;
};
Sites sites_of(const Step& step);

struct PlanFile {
  Plan plan;
  Sites sites;
  std::string torch;                 // that the step was recorded with
  std::vector<std::string> command;  // likewise
  std::uint64_t seed = 1;            // of the search
  Bytes memory{};                    // of the whole process, that `plan.budget` is the pool's part of; zero: not stated
  std::string device = "cpu";        // as of trace::TraceFile: whose bytes all these are
};

// One object, fields and list items on lines of their own, and a line end.
void write_plan(const PlanFile& file, std::ostream& out);
// BadFile: no plan, of another version, or one whose numbers do not fit together.
Result<PlanFile> read_plan(std::string_view text, const std::string& name);

}  // namespace ullage::plan
