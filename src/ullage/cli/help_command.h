// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage help [VERB]`.

#include "ullage/cli/streams.h"

#include <CLI/App.hpp>

#include <string>

namespace ullage::cli {

struct HelpOptions {
  std::string verb;  // empty: the overview
};

CLI::App* add_help(CLI::App& app, HelpOptions& options);

// Prints the help of `options.verb`, or the overview if that is empty. `app` is the root with all its verbs, and the
// verb must be one of them. Returns the exit code.
int run_help(const HelpOptions& options, const CLI::App& app, Streams streams);

}  // namespace ullage::cli
