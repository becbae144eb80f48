// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage plan`: says how a recorded program would fit into the stated bytes and what that would cost in time.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct PlanOptions {
  std::vector<std::string> files;     // as typed; exactly one is accepted, with `allow` several
  std::optional<std::string> allow;   // "rounding,different"; none: nothing is compared
  std::optional<std::string> memory;  // for the whole process; none: only the curve is wanted
  std::optional<std::string> levers;  // "recompute,spill"; none: all
  std::optional<std::size_t> step;    // counted from 1; none: a typical one
  // Bytes per second to and from the disk; none: measured. For a trace made on a card: to and from locked memory; none:
  // 12 GB/s.
  std::optional<std::string> rate;
  std::optional<std::size_t> top;  // how many sites to name; none: 10
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> effort;  // millions of simulated ops; none: the default of plan::Ask
  bool curve = false;
  bool json = false;
  std::string out;     // where the plan is written; empty: nowhere
  std::string html;    // where the page is written; empty: nowhere
  MachineRoots roots;  // tests put their own here
};

CLI::App* add_plan(CLI::App& app, PlanOptions& options);

// Writes the answer to `out` and everything else to `err`. Returns the exit code.
int run_plan(const PlanOptions& options, Streams streams);

}  // namespace ullage::cli
