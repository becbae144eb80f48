// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/words.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ullage::cli {
namespace {

// Optimal string alignment: adding, dropping or changing a letter and swapping two neighbours each cost 1.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Is it a file that can be run, rather than a name or a file to read?
bool is_command(const std::string& word) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(word, ignored) && access(word.c_str(), X_OK) == 0;
}

Error bad_word(std::string message) { return {Error::Kind::BadArgument, std::move(message), ""}; }

}  // namespace

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t least =
      std::max<std::size_t>(1, letters / 3) + 1;  // one letter in three may be wrong, and one in a short word
  std::optional<std::string> best;
  for (const std::string& candidate : candidates) {
    if (const std::size_t edits = distance(word, candidate); edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> meant = nearest(word, candidates);
  return meant ? ", did you mean '" + *meant + "'?" : "";
}

Result<Split> split_words(const CLI::App& verb, const std::vector<std::string>& words) {
  Split split;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" || word.size() < 2 || word.front() != '-') {
      split.target.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      return split;
    }
    const std::string name = word.substr(0, word.find('='));
    const CLI::Option* option = verb.get_option_no_throw(name);
    if (option == nullptr) return bad_word("unknown option " + name + suggestion(name, option_names(verb)));
    split.options.push_back(word);
    if (option->get_items_expected_min() == 0 || name != word) continue;
    for (int n = 0; n < option->get_items_expected_min(); ++n) {
      if (i + 1 == words.size()) return bad_word("option " + name + " needs a value (" + option->get_type_name() + ")");
      split.options.push_back(words[++i]);
    }
  }
  return split;
}

Result<Split> gather_words(const CLI::App& verb, const std::vector<std::string>& words, Commands commands) {
  Split all;
  std::vector<std::string> left = words;
  while (!left.empty()) {
    Result<Split> split_or = split_words(verb, left);
    if (!split_or) {
      const bool runs = commands == Commands::Run && !all.target.empty() && is_command(all.target.front());
      if (!runs) return split_or.error();
      return bad_word(split_or.error().message + "; to give it to the command, write -- before " + all.target.front());
    }
    Split& split = *split_or;
    all.options.insert(all.options.end(), split.options.begin(), split.options.end());
    left.clear();
    if (split.target.empty()) break;
    const bool rest = split.target.front() == "--";
    const auto first = split.target.begin() + (rest ? 1 : 0);
    all.target.insert(all.target.end(), first, rest ? split.target.end() : first + 1);
    if (!rest) left.assign(first + 1, split.target.end());
  }
  return all;
}

}  // namespace ullage::cli
