// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits the words of a command line into those for Ullage and those for the program, before CLI11 reads them. Also
// finds what a person may have meant by an unknown word.

#include "ullage/base/result.h"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::cli {

// Returns the candidate with the fewest edits from `word` (letters added, dropped, changed or swapped). Returns nothing
// if these are more than a third of the letters of `word`. A word of fewer than six letters may have one edit.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns ", did you mean 'run'?", or an empty text.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

// The parts of `text` between its commas, empty ones too: one part more than there are commas.
std::vector<std::string> between_commas(const std::string& text);

// Makes a BadArgument; `where` names the option.
inline Error wrong(std::string message, std::string where) {
  return {Error::Kind::BadArgument, std::move(message), std::move(where)};
}

// The words of a verb in two parts. The first has its options. The second begins with "--" or with the first word that
// is no option, and has all words after it; they go to the program unchanged.
struct Split {
  std::vector<std::string> options;
  std::vector<std::string> target;  // first the program's name or "--"; empty if there is none
};
// Returns BadArgument for an unknown option (with a suggestion) and for an option without its value.
Result<Split> split_words(const CLI::App& verb, const std::vector<std::string>& words);

// As split_words(), for a verb whose options may stand before and after its other words. Those words are the target;
// "--" is dropped from it, and no word after "--" is an option. Commands::Run: the verb also runs commands. For such a
// verb, the error of an unknown option may also say how to give that option to the command. It does if the target's
// first word is a file that can be run.
enum class Commands { Run, None };
Result<Split> gather_words(const CLI::App& verb, const std::vector<std::string>& words, Commands commands);

}  // namespace ullage::cli
