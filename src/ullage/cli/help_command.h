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

// `app` is the root with all its verbs; `options.verb` is one of them or empty. Returns the exit code.
int run_help(const HelpOptions& options, const CLI::App& app, Streams streams);

}  // namespace ullage::cli
