// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage explain`: shown a log, a snapshot, a trace of its own, a printed table or a profiler trace, it says why
// memory ran out.

#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

struct ExplainOptions {
  std::vector<std::string> files;  // as typed; one is wanted, "-" is standard input
  std::optional<unsigned> device;
  bool json = false;
  std::string html;                  // empty: no page
  std::optional<std::size_t> top;    // owners told by name
  std::string at;                    // "peak", "oom", "end"; empty: the error if there is one, else the peak
  std::vector<std::string> convert;  // empty, or a format and a file
};

CLI::App* add_explain(CLI::App& app, ExplainOptions& options);

// Returns the exit code. The answer goes to `out`, everything else to `err`.
int run_explain(const ExplainOptions& options, Streams streams);

}  // namespace ullage::cli
