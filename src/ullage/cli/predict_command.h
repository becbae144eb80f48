// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage predict`: says what a program will need at a size before it is run at that size.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct PredictOptions {
  std::vector<std::string> vary;      // "batch=2,3,4", or "batch": Ullage chooses the sizes
  std::vector<std::string> at;        // "batch=128"
  std::optional<std::string> memory;  // of the machine asked about; none: fitting is not asked about
  std::string device = "cpu";         // "cpu", "cuda", "cuda:8GiB"; for a dry run also a card's name
  std::optional<std::string> keep;    // the file for the takes, or the history of a dry run; none: not kept
  std::optional<double> seconds;      // time limit of a dry run; none: 300
  bool here = false;                  // run a command in this folder; false: in an empty one
  bool json = false;
  std::vector<std::string> target;  // a shipped program and its words; "--" and a command; or a file
  MachineRoots roots;               // tests put their own here
};

CLI::App* add_predict(CLI::App& app, PredictOptions& options);

// Returns whether `word` names a file of takes rather than a program. Options may follow such a word.
bool is_take_file(const std::string& word);

// Writes the answer to `out` and everything else to `err`. Returns the exit code.
int run_predict(const PredictOptions& options, Streams streams);

}  // namespace ullage::cli
