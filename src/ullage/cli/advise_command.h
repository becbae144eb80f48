// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage advise`: tries every remedy that applies on the program itself, and says what each does.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct AdviseOptions {
  std::vector<std::string> vary, at;  // at most one knob: "batch", "batch=64"
  std::optional<std::string> memory;  // for a program on the CPU: a size, or "auto"; none: auto
  std::optional<std::string> device;  // a card or "cpu"; none: "cuda" if torch is a CUDA build and `memory` is none
  double seconds = 120;               // for everything
  std::size_t top = 12;               // rows shown; 0: all
  bool here = false;                  // run a command on the CPU in this folder; false: in an empty one
  std::optional<std::string> html;    // a page is written there too
  bool json = false;
  std::vector<std::string> target;  // "--" and a command, a shipped program and its words, or a file
  MachineRoots roots;               // tests put their own here
};

CLI::App* add_advise(CLI::App& app, AdviseOptions& options);

// Writes the answer to `out` and everything else to `err`. Returns the exit code.
int run_advise(const AdviseOptions& options, Streams streams);

}  // namespace ullage::cli
