// SPDX-License-Identifier: Apache-2.0
#include "program/option_words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace ullage::program {
namespace {

// Levenshtein's distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string long_option(std::string_view word, std::span<const ShortOption> short_options) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return std::string(word);
  std::string name(word.substr(0, word.find('=')));
  const std::string value(word.substr(name.size()));
  for (const ShortOption& one : short_options) {
    if (std::string_view(name).substr(1) == one.name) return "--" + std::string(one.stands_for) + value;
  }
  if (name.size() > 2 && std::isalpha(static_cast<unsigned char>(name[1])) != 0) name = "-" + name;
  if (!name.starts_with("--")) return std::string(word);
  std::replace(name.begin(), name.end(), '_', '-');
  return name + value;
}

std::string suggestion_for(const CLI::App& app, const std::string& word) {
  std::string best;
  std::size_t least = 4;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = "--" + option->get_lnames().front();
    if (const std::size_t d = distance(word.substr(0, word.find('=')), name); d < least) {
      least = d;
      best = name;
    }
  }
  return best.empty() ? "see --help" : "did you mean " + best + "?";
}

std::string first_outside(std::span<const Bound> bounds) {
  for (const Bound& b : bounds) {
    if (b.value < b.least || b.value > b.most) {
      return std::string(b.name) + " " + std::to_string(b.value) + " is out of range: it must be from " +
             std::to_string(b.least) + " to " + std::to_string(b.most);
    }
  }
  return "";
}

Answer wrong_use(const CLI::App& app, const std::string& what) {
  return {ExitCode::WrongUse, app.get_name() + ": " + what + "\n"};
}

std::optional<Answer> answer_to(const CLI::App& app, const std::function<void()>& parse) {
  try {
    parse();
  } catch (const CLI::CallForHelp&) {
    return Answer{ExitCode::Done, app.help()};
  } catch (const CLI::RequiredError& error) {
    return wrong_use(app, std::string(error.what()) + "; see --help");
  } catch (const CLI::ConversionError& error) {
    constexpr std::string_view kPrefix = "Could not convert: ";
    const std::string what = error.what();
    return wrong_use(app,
                     (what.starts_with(kPrefix) ? what.substr(kPrefix.size()) : what) + ": not a number that fits");
  } catch (const CLI::ArgumentMismatch& error) {
    return wrong_use(app, std::string(error.what()) + "; give each option one value");
  } catch (const CLI::ParseError& error) {
    return wrong_use(app, error.what());
  }
  const auto unknown = app.remaining();
  if (unknown.empty()) return std::nullopt;
  return wrong_use(app, "unknown option " + unknown.front() + ": " + suggestion_for(app, unknown.front()));
}

}  // namespace ullage::program
