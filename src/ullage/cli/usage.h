// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives a verb's help text, which CLI11 writes, our own usage line.

#include <CLI/App.hpp>

#include <string>

namespace ullage::cli {

// Sets the line "usage: <usage>" and the options --help and --version of `app`.
void set_usage(CLI::App& app, const std::string& usage);

}  // namespace ullage::cli
