// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words of a command line before CLI11 reads them: which are Ullage's and which the program's, and what a person
// may have meant by a word that is none of either.

#include "ullage/base/result.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::cli {

// The candidate nearest to `word` by letters added, dropped, changed or swapped; none when all are too far to be meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// ", did you mean 'run'?" or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

// BadArgument: `where` names the option.
inline Error wrong(std::string message, std::string where) {
  return {Error::Kind::BadArgument, std::move(message), std::move(where)};
}

// The words of `verb` cut in two: its options, and from the first word that is no option (or from "--") everything
// else, which belongs to the program untouched.
struct Split {
  std::vector<std::string> options;
  std::vector<std::string> target;  // first the program's name or "--"; empty when there is none
};
// BadArgument for an unknown option (with a suggestion), and for an option whose value is missing.
Result<Split> split_words(const CLI::App& verb, const std::vector<std::string>& words);

// For a verb whose options may stand before and behind its other words, which are the target; behind "--" no word is an
// option. BadArgument as above.
Result<Split> gather_words(const CLI::App& verb, const std::vector<std::string>& words);

}  // namespace ullage::cli
