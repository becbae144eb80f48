// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

namespace ullage::cli {
namespace {

std::string_view text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool says_utf8(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(text_of(environment, name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

report::TerminalStyle terminal_style(bool terminal, unsigned columns, const Environment& environment) {
  report::TerminalStyle style;
  style.colors = terminal && text_of(environment, "NO_COLOR").empty() && text_of(environment, "TERM") != "dumb";
  style.unicode = says_utf8(environment);
  if (columns == 0) {
    const std::string_view stated = text_of(environment, "COLUMNS");
    std::from_chars(stated.data(), stated.data() + stated.size(), columns);
  }
  if (columns > 0) style.width = columns;
  return style;
}

report::TerminalStyle terminal_style(int descriptor, const Environment& environment) {
  const bool terminal = ::isatty(descriptor) != 0;
  winsize size{};
  const bool known = terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return terminal_style(terminal, known ? size.ws_col : 0u, environment);
}

}  // namespace ullage::cli
