// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run`: a program under a budget, with a summary and a report at its end.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct RunOptions {
  bool dry = false;  // with no card: dry_command.h
  std::string memory = "auto";
  std::string device = "cpu";              // whose memory that is: "cpu", "cuda", "cuda:N"
  std::optional<std::string> host_memory;  // for what leaves a card; none: half of the machine's
  std::optional<std::string> spill;        // "DIR" or "DIR:SIZE"; none: a temporary folder
  std::string report;                      // empty: none
  std::optional<std::string> record;       // the trace's file; none: nothing is recorded
  std::optional<std::string> plan;         // a plan to begin with; none: one is made when it is needed
  bool no_plan = false;                    // everything is decided on demand
  bool quiet = false;
  std::vector<std::string> target;  // first a shipped program's name, or "--" and then a command
  MachineRoots roots;               // of the machine; tests put others here
};

CLI::App* add_run(CLI::App& app, RunOptions& options);

// Returns the command's own exit code, or one of Ullage's when it was not started.
int run_run(const RunOptions& options, Streams streams);

}  // namespace ullage::cli
