// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/log_lines.h"

#include "ullage/base/utf8.h"

#include <algorithm>

namespace ullage::read {
namespace {

bool is_break(char c) { return c == '\n' || c == '\r'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || is_break(c); }

// Returns the length of the parameters and last letter of "ESC [ 1 ; 31 m" (`at` is after the bracket); 0 if it is
// malformed.
std::size_t control_sequence(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 32;
  const std::size_t stop = std::min(text.size(), at + kLongest);
  for (std::size_t i = at; i < stop; ++i) {
    const char c = text[i];
    if (c >= 0x40 && c <= 0x7e) return i + 1 - at;
    if (c < 0x20 || c > 0x3f) return 0;
  }
  return 0;
}

// The same for titles and links: "ESC ] ... BEL" or "ESC ] ... ESC \".
std::size_t system_command(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 512;
  const std::size_t stop = std::min(text.size(), at + kLongest);
  for (std::size_t i = at; i < stop && !is_break(text[i]); ++i) {
    if (text[i] == '\a') return i + 1 - at;
    if (text[i] == '\x1b') return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 - at : i - at;
  }
  return 0;
}

// Returns the length of "[31m" or "[0m" without its escape character, or 0.
std::size_t bare_colour(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  while (i < text.size() && i < at + 12 && (is_digit(text[i]) || text[i] == ';')) ++i;
  return i > at + 1 && i < text.size() && text[i] == 'm' ? i + 1 - at : 0;
}

// Returns the length of the UTF-8 character that begins here, or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const Utf8Character first = first_utf8(text.substr(at));
  return first.surrogate() ? 0 : first.length;
}

}  // namespace

Line line_at(std::string_view text, std::size_t offset) {
  Line line{offset, offset};
  const std::size_t first = offset > kLongestLine ? offset - kLongestLine : 0;
  const std::size_t last = std::min(text.size(), offset + kLongestLine);
  while (line.begin > first && !is_break(text[line.begin - 1])) --line.begin;
  while (line.end < last && !is_break(text[line.end])) ++line.end;
  return line;
}

std::optional<Line> line_before(std::string_view text, const Line& line) {
  std::size_t at = line.begin;
  const std::size_t first = at > kLongestLine ? at - kLongestLine : 0;
  while (at > first && is_blank(text[at - 1])) --at;
  if (at == first) return std::nullopt;
  const Line found = line_at(text, at - 1);
  if (found.end > line.begin) return std::nullopt;  // no line break between: both belong to one very long line
  return found;
}

std::optional<Line> line_after(std::string_view text, const Line& line) {
  std::size_t at = line.end;
  const std::size_t last = std::min(text.size(), at + kLongestLine);
  while (at < last && is_blank(text[at])) ++at;
  if (at == last || at == line.end) return std::nullopt;
  return line_at(text, at);
}

std::size_t escape_length(std::string_view text, std::size_t at) {
  if (text[at] == '[') return bare_colour(text, at);
  if (text[at] != '\x1b') return 0;
  if (at + 1 == text.size()) return 1;
  if (text[at + 1] == '[') return 2 + control_sequence(text, at + 2);
  if (text[at + 1] == ']') return 2 + system_command(text, at + 2);
  return text[at + 1] == '(' || text[at + 1] == ')' ? std::min<std::size_t>(3, text.size() - at) : 1;
}

std::string clean(std::string_view raw, std::size_t longest) {
  std::string text;
  text.reserve(std::min(raw.size(), longest));
  bool blank = false;
  for (std::size_t i = 0; i < raw.size();) {
    if (const std::size_t escape = escape_length(raw, i)) {
      i += escape;
      continue;
    }
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c <= 0x20 || c == 0x7f) {
      blank = !text.empty();
      ++i;
      continue;
    }
    const std::size_t length = utf8_length(raw, i);
    if (text.size() + (blank ? 1 : 0) + std::max<std::size_t>(length, 1) > longest) break;
    if (blank) text += ' ';
    blank = false;
    text += length == 0 ? std::string_view("?") : raw.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return text;
}

}  // namespace ullage::read
