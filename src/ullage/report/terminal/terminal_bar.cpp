// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/terminal/terminal_bar.h"

#include "ullage/base/sizes.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

namespace ullage::report {
namespace {

using Kind = diagnose::Bar::Part::Kind;

// How a part is drawn: a sign of one column, and an ANSI color (0: none).
struct Look {
  std::string sign;
  int color = 0;
};

// ANSI foreground colors of live parts, in their order; readable on dark and on light.
constexpr std::array<int, 6> kLiveColors = {34, 32, 35, 36, 33, 31};

// Returns a letter of the part's name that no earlier part has.
std::string letter_for(const std::string& name, std::string& taken) {
  for (unsigned char c : name + "0123456789") {
    const char upper = static_cast<char>(std::toupper(c));
    if (c >= 0x80 || !std::isalnum(c) || taken.find(upper) != std::string::npos) continue;
    taken += upper;
    return std::string(1, upper);
  }
  return "*";
}

std::vector<Look> looks(const diagnose::Bar& bar, const TerminalStyle& style) {
  std::vector<Look> out;
  std::string taken = "X";  // 'x' is the sign of stuck bytes
  std::size_t live = 0;
  for (const diagnose::Bar::Part& part : bar.parts) {
    switch (part.kind) {
      case Kind::Live:
        out.push_back({style.unicode && style.colors ? "\u2588" : letter_for(part.name, taken),
                       kLiveColors[live++ % kLiveColors.size()]});
        break;
      case Kind::Usable:
        out.push_back({style.unicode ? "\u2591" : "+", 32});
        break;
      case Kind::Stuck:
        out.push_back({style.unicode ? "\u2592" : "x", 31});
        break;
      case Kind::NotPyTorch:
        out.push_back({style.unicode ? "\u2593" : "#", 90});
        break;
      case Kind::Free:
        out.push_back({style.unicode ? "\u00b7" : ".", 0});
        break;
    }
  }
  return out;
}

std::string colored(const std::string& text, int color, const TerminalStyle& style) {
  if (!style.colors || color == 0 || text.empty()) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", color, text);
}

// "A activations            2.10 GiB  26 %"
std::string legend_entry(const diagnose::Bar::Part& part, Bytes total, const Look& look, std::size_t width,
                         const TerminalStyle& style) {
  const std::string figures = fmt::format("{:>10} {:>5}", to_string(part.bytes), share(part.bytes, total));
  const std::size_t room = width - std::min(width, figures.size() + 3);
  return colored(look.sign, look.color, style) + " " + padded(clip(clean(part.name, style.unicode), room), room) + " " +
         figures;
}

}  // namespace

std::vector<std::size_t> bar_cells(const std::vector<Bytes>& parts, std::size_t cells) {
  std::vector<std::size_t> out(parts.size());
  const auto some =
      static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [](Bytes part) { return part > Bytes{}; }));
  if (some == 0) return out;
  const auto count = [](double sum, Bytes part) { return sum + static_cast<double>(part.count); };
  const double total = std::accumulate(parts.begin(), parts.end(), 0.0, count);
  // Each part gets one cell first. Each further cell goes to the part that lacks most; there are few parts and few
  // cells.
  for (std::size_t i = 0; i < parts.size(); ++i) out[i] = parts[i] > Bytes{} ? 1 : 0;
  for (std::size_t used = some; used < cells; ++used) {
    std::size_t neediest = 0;
    double most = -1e300;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double ideal = static_cast<double>(parts[i].count) / total * static_cast<double>(cells);
      const double missing = ideal - static_cast<double>(out[i]);
      if (parts[i] > Bytes{} && missing > most) most = missing, neediest = i;
    }
    ++out[neediest];
  }
  return out;
}

std::string share(Bytes part, Bytes whole) {
  if (whole == Bytes{}) return "-";
  if (part == Bytes{}) return "0 %";
  if (part == whole) return "100 %";
  const double percent = 100 * static_cast<double>(part.count) / static_cast<double>(whole.count);
  if (percent < 1) return "<1 %";
  return fmt::format("{:.0f} %", std::min(percent, 99.0));
}

std::vector<std::string> bar_lines(const diagnose::Bar& bar, const TerminalStyle& style) {
  std::vector<Bytes> sizes;
  for (const diagnose::Bar::Part& part : bar.parts) sizes.push_back(part.bytes);
  const std::vector<Look> all = looks(bar, style);
  const std::vector<std::size_t> cells = bar_cells(sizes, style.width - 2);
  std::string line = "[";
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string signs;
    for (std::size_t n = 0; n < cells[i]; ++n) signs += all[i].sign;
    line += colored(signs, all[i].color, style);
  }
  std::vector<std::string> lines = {clip(clean(bar.of, style.unicode), style.width), line + "]"};
  const std::size_t abreast = style.width >= 76 ? 2 : 1;
  const std::size_t room = style.width / abreast - 2;
  std::size_t in_line = abreast;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (bar.parts[i].bytes == Bytes{}) continue;
    const std::string entry = legend_entry(bar.parts[i], bar.total, all[i], room, style);
    if (in_line == abreast) lines.emplace_back(), in_line = 0;
    lines.back() += (in_line++ == 0 ? " " : "   ") + entry;
  }
  return lines;
}

std::string bold(const std::string& text, const TerminalStyle& style) {
  return style.colors ? "\x1b[1m" + text + "\x1b[0m" : text;
}

}  // namespace ullage::report
