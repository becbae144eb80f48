// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/result_changes.h"

#include "ullage/cli/recorded_program.h"

#include <sstream>
#include <utility>

namespace ullage::cli {

ChangedBy changed_by(const trace::ResultChange& change) {
  std::vector<advise::Option> options;
  std::istringstream in(change.what);
  for (std::string word; in >> word;) {
    if (word.starts_with("--")) {
      options.push_back({word.substr(2), ""});
    } else if (!options.empty()) {
      options.back().value = word;
    }
  }
  if (options.empty()) return {};
  return {options.front(), {options.begin() + 1, options.end()}};
}

std::string needed_beside(std::span<const trace::ResultChange> changes, const std::string& option) {
  std::string text;
  for (const trace::ResultChange& change : changes) {
    const ChangedBy by = changed_by(change);
    if (by.option.name != option) continue;
    for (const advise::Option& one : by.beside)
      text += (text.empty() ? "--" : " --") + one.name + (one.value.empty() ? "" : " " + one.value);
  }
  return text;
}

std::vector<std::string> with_needed(std::vector<std::string> words, std::span<const trace::ResultChange> changes) {
  for (const trace::ResultChange& change : changes) {
    for (const advise::Option& one : changed_by(change).beside)
      words = with_option(std::move(words), one.name, one.value);
  }
  return words;
}

}  // namespace ullage::cli
