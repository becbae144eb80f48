// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ullage::report {
namespace {

constexpr std::size_t kLongestCommand = 100;  // bytes of a line; " ..." is added in place of the rest

}  // namespace

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out + "'";
}

std::string command_line(const std::string& begin, const std::vector<std::string>& target) {
  std::string line = "ullage " + begin;
  for (const std::string& word : target) {
    const std::string next = quoted(word);
    if (line.size() + next.size() + 1 > kLongestCommand) return line + " ...";
    line += " " + next;
  }
  return line;
}

std::string whole_command_line(const std::string& begin, const std::vector<std::string>& target) {
  std::string line = "ullage " + begin;
  for (const std::string& word : target) line += " " + quoted(word);
  return line;
}

std::string as_option(Bytes bytes) {
  if (bytes.count % (1_GiB).count == 0) return fmt::format("{}GiB", bytes.count / (1_GiB).count);
  return fmt::format("{}MiB", bytes.count / (1_MiB).count + (bytes.count % (1_MiB).count != 0 ? 1 : 0));
}

std::string as_stated(Bytes bytes) {
  return bytes.count % (1_MiB).count == 0 ? as_option(bytes) : std::to_string(bytes.count);
}

}  // namespace ullage::report
