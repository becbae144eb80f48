// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses options as people write them, and words the errors about those that are wrong.

#include "program/answer.h"

#include <CLI/App.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ullage::program {

// A short name as argparse takes it behind one dash: "-ii" stands for "--init-image".
struct ShortOption {
  std::string_view name;        // "ii"
  std::string_view stands_for;  // "init-image"
};

// Rewrites a word of the command line for CLI11: "-input_dir=x" and "--input_dir=x" become "--input-dir=x"; short
// options become the long ones. Leaves numbers, -h and words that are no options alone.
std::string long_option(std::string_view word, std::span<const ShortOption> short_options = {});

// Returns "did you mean --batch?", or "see --help" if no option is similar.
std::string suggestion_for(const CLI::App& app, const std::string& word);

// A number given for an option, and its limits.
struct Bound {
  const char* name;  // "--batch"
  std::int64_t value, least, most;
};
// Returns "--batch 0 is out of range: it must be from 1 to 1048576" for the first number outside its limits, or "".
std::string first_outside(std::span<const Bound> bounds);

// Returns the answer for wrong use: WrongUse, and `what` behind the program's name.
Answer wrong_use(const CLI::App& app, const std::string& what);

// Calls `parse`. Returns help if it was asked for, or what is wrong with the words; nothing if they are fine.
std::optional<Answer> answer_to(const CLI::App& app, const std::function<void()>& parse);

}  // namespace ullage::program
