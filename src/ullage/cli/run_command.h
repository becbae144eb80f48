// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run`: runs a program under a budget and writes a summary and a report when it ends.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct RunOptions {
  bool dry = false;  // run without a card; without a stated `memory` in dry_command.h
  std::string memory = "auto";
  std::string device = "cpu";              // whose memory is budgeted: "cpu", "cuda", "cuda:N"; with `dry`: dry_card.h
  std::optional<std::string> host_memory;  // locked memory for tensors evicted from a card; not set: half the machine's
  std::optional<std::string> spill;        // "DIR", "DIR:SIZE" or "none"; not set: a temporary folder
  std::string report;                      // the report's file; empty: none
  std::optional<std::string> record;       // the trace's file; none: nothing is recorded
  std::optional<std::string> plan;         // a plan to follow from the start; none: one is made when needed
  bool no_plan = false;                    // no plan is made or followed
  std::optional<std::string> allow;        // changes of the results that are allowed; none: not a bit may change
  bool quiet = false;
  std::vector<std::string> target;  // a shipped program's name, or "--" and a command; then its arguments
  MachineRoots roots;               // tests put their own here
};

CLI::App* add_run(CLI::App& app, RunOptions& options);

// Returns the command's own exit code, or one of Ullage's if the command was not started. If the command succeeded but
// its report or trace was not written, returns 1.
int run_run(const RunOptions& options, Streams streams);

}  // namespace ullage::cli
