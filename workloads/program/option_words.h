// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options as people write them, and what is said of those that cannot be taken.

#include "program/answer.h"

#include <CLI/App.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ullage::program {

// What argparse's programs take behind one dash: "-ii" stands for "--init-image".
struct ShortOption {
  std::string_view name;        // "ii"
  std::string_view stands_for;  // "init-image"
};

// A word of the command line as CLI11 takes it: "-input_dir=x", "--input_dir=x" to "--input-dir=x", short ones to what
// they stand for. Numbers, -h and all that is no option are left alone.
std::string long_option(std::string_view word, std::span<const ShortOption> short_options = {});

// "did you mean --batch?", or "see --help" where no option is near.
std::string suggestion_for(const CLI::App& app, const std::string& word);

// A number given for an option, and what it may be.
struct Bound {
  const char* name;  // "--batch"
  std::int64_t value, least, most;
};
// Of the first that is outside: "--batch 0 does not work: ..."; empty: none is.
std::string first_outside(std::span<const Bound> bounds);

// Wrong use of this program, in these words.
Answer wrong_use(const CLI::App& app, const std::string& what);

// Has `parse` take the words. Help where it is asked for, what is wrong with them; nothing: they can be taken.
std::optional<Answer> answer_to(const CLI::App& app, const std::function<void()>& parse);

}  // namespace ullage::program
