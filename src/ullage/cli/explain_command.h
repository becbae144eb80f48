// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage explain`: reads a log, a snapshot, one of our traces, a printed table or a profiler trace, and says why
// memory ran out. Or runs a command, and explains it if it runs out of memory (explained_run.h).

#include "ullage/cli/control_groups.h"
#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct ExplainOptions {
  std::vector<std::string> files;    // as typed; exactly one is accepted, "-" is standard input
  std::vector<std::string> command;  // "--" and a command with its words; empty: `files` has the input
  std::optional<unsigned> device;
  bool json = false;
  std::string out;                      // a file for the answer; empty: stdout, or stderr with a command
  std::string html;                     // empty: no page
  std::optional<std::size_t> top;       // how many owners to name; none: what fits on a screen
  std::string at;                       // "peak", "oom", "end"; empty: the error if there is one, else the peak
  std::vector<std::string> convert;     // empty, or a format and a file
  std::optional<std::string> keep;      // with a command: the folder for its snapshot and log
  std::optional<std::uint64_t> events;  // with a command: the most events of torch's history that are kept
  MachineRoots roots;
};

CLI::App* add_explain(CLI::App& app, ExplainOptions& options);

// Explains a file: writes the answer to `out` (or the file of --out) and everything else to `err`; returns the exit
// code. With a command: see run_explained().
int run_explain(const ExplainOptions& options, Streams streams);

}  // namespace ullage::cli
