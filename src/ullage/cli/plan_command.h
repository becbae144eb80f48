// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage plan`: how a recorded program would fit into stated bytes, and what that would cost.

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
  std::vector<std::string> files;     // as typed; one is wanted
  std::optional<std::string> memory;  // of the whole process
  std::optional<std::string> levers;  // "recompute,spill"; none: all
  std::optional<std::size_t> step;    // from 1; none: a typical one
  std::optional<std::string> rate;    // bytes a second to and from the disk; none: measured
  std::optional<std::size_t> top;     // sites told by name
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> effort;  // millions of ops simulated; none: the planner's own
  bool curve = false;
  bool json = false;
  std::string out;     // empty: the plan is not kept
  std::string html;    // empty: no page
  MachineRoots roots;  // of the machine; tests put others here
};

CLI::App* add_plan(CLI::App& app, PlanOptions& options);

// Returns the exit code. The answer goes to `out`, everything else to `err`.
int run_plan(const PlanOptions& options, Streams streams);

}  // namespace ullage::cli
