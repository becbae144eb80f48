// SPDX-License-Identifier: Apache-2.0
#pragma once

// CLI11's help text with a usage line of our own.

#include <CLI/App.hpp>

#include <string>

namespace ullage::cli {

// Gives `app` the line "usage: <usage>", and the options --help and --version.
void set_usage(CLI::App& app, const std::string& usage);

}  // namespace ullage::cli
