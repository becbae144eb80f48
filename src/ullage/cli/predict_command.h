// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage predict`: what a program will need at a size, told before it is run there.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct PredictOptions {
  std::vector<std::string> vary;      // "batch=2,3,4", or "batch": Ullage chooses
  std::vector<std::string> at;        // "batch=128"
  std::optional<std::string> memory;  // of the machine that is asked about
  std::string device = "cpu";         // "cpu", "cuda", "cuda:8GiB"
  std::optional<std::string> keep;    // where the takes go
  std::optional<double> seconds;      // of a dry run at most; none: 300
  bool here = false;
  bool json = false;
  std::vector<std::string> target;  // a shipped program and its words; "--" and a command; a file
  MachineRoots roots;               // of the machine; tests put others here
};

CLI::App* add_predict(CLI::App& app, PredictOptions& options);

// A word that names a file of takes rather than a program: behind it options may go on.
bool is_take_file(const std::string& word);

// Returns the exit code. The answer goes to `out`, everything else to `err`.
int run_predict(const PredictOptions& options, Streams streams);

}  // namespace ullage::cli
