// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage explain`: reads a log, a snapshot, one of our traces, a printed table or a profiler trace, and says why
// memory ran out.

#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct ExplainOptions {
  std::vector<std::string> files;  // as typed; exactly one is accepted, "-" is standard input
  std::optional<unsigned> device;
  bool json = false;
  std::string html;                  // empty: no page
  std::optional<std::size_t> top;    // how many owners to name; none: what fits on a screen
  std::string at;                    // "peak", "oom", "end"; empty: the error if there is one, else the peak
  std::vector<std::string> convert;  // empty, or a format and a file
};

CLI::App* add_explain(CLI::App& app, ExplainOptions& options);

// Writes the answer to `out` and everything else to `err`. Returns the exit code.
int run_explain(const ExplainOptions& options, Streams streams);

}  // namespace ullage::cli
