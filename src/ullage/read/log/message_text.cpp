// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/message_text.h"

#include "ullage/read/log/log_lines.h"

#include <algorithm>
#include <utility>

namespace ullage::read {
namespace {

// Returns the length of the blank at text[i], or 0 if there is none. Blanks are white space (U+00A0 too), control
// characters, lines drawn around text (U+2500 to U+257F) and byte order marks. So are line breaks as JSON writes them:
// "\n", "\r".
std::size_t blank_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
  const unsigned first = byte(0);
  if (first <= 0x20 || first == 0x7f) return 1;
  if (first == '\\' && (byte(1) == 'n' || byte(1) == 'r')) return 2;
  if (first == 0xc2 && byte(1) == 0xa0) return 2;
  if (first == 0xe2 && (byte(1) == 0x94 || byte(1) == 0x95)) return byte(2) == 0 ? 2 : 3;
  if (first == 0xef && byte(1) == 0xbb && byte(2) == 0xbf) return 3;
  return 0;
}

// Returns whether the letter certainly stays: it is neither blank nor the beginning of anything that is removed.
bool is_plain(char c) { return c > 0x20 && c < 0x7f && c != '[' && c != '\\'; }

std::size_t line_end(std::string_view text, std::size_t at, std::size_t end) {
  while (at < end && text[at] != '\n' && text[at] != '\r') ++at;
  return at;
}

void squeeze_line(std::string_view text, std::size_t begin, std::size_t end, Squeezed& into) {
  const std::string_view upto = text.substr(0, end);
  bool first = true;
  for (std::size_t i = begin; i < end;) {
    std::size_t skip = 0;
    if (!is_plain(text[i])) skip = escape_length(upto, i);
    if (skip == 0 && !is_plain(text[i])) skip = blank_length(upto, i);
    if (skip != 0) {
      i += skip;
      continue;
    }
    if (first) into.lines.push_back(into.letters.size());
    const char c = text[i];
    // "2 3.00 GiB" are two numbers, so a blank stays between them. A line break puts no blank, because it may split one
    // number.
    if (!first && i != into.at.back() + 1 && is_digit(c) && is_digit(into.letters.back())) {
      into.letters.push_back(' ');
      into.at.push_back(i - 1);
    }
    first = false;
    into.letters.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    into.at.push_back(i);
    ++i;
  }
}

}  // namespace

bool Squeezed::line_begins(std::size_t letter) const { return std::ranges::binary_search(lines, letter); }

std::size_t Squeezed::end_of_line(std::size_t letter) const {
  const auto next = std::ranges::upper_bound(lines, letter);
  return next == lines.end() ? letters.size() : *next;
}

std::size_t Squeezed::letter_at(std::size_t offset) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(at, offset) - at.begin());
}

std::size_t shared_prefix(std::string_view line, std::string_view pattern) {
  std::size_t i = 0, j = 0, shared = 0;
  bool separator = false;
  while (i < line.size() && j < pattern.size()) {
    if (is_digit(line[i]) && is_digit(pattern[j])) {
      while (i < line.size() && is_digit(line[i])) ++i;
      while (j < pattern.size() && is_digit(pattern[j])) ++j;
      continue;
    }
    if (line[i] != pattern[j]) break;
    separator |= line[i] == ':' || line[i] == '|' || line[i] == ']' || line[i] == ')' || line[i] == '>';
    if (separator && (line[i] == ' ' || line[i] == '\t')) shared = i + 1;
    ++i, ++j;
  }
  return shared;
}

namespace {

// `prefix(line)` returns the length of a line's prefix. It is not called for the first line if `begin` lies inside it.
template <class Prefix>
Squeezed squeeze_lines(std::string_view text, std::size_t begin, std::size_t end, const Prefix& prefix) {
  Squeezed into;
  into.letters.reserve(end - begin);
  into.at.reserve(end - begin);
  for (std::size_t at = begin; at < end;) {
    const std::size_t stop = line_end(text, at, end);
    const std::string_view line = text.substr(at, stop - at);
    const bool whole = at == 0 || text[at - 1] == '\n' || text[at - 1] == '\r';
    const std::size_t length = whole ? prefix(line) : 0;
    const std::size_t lines = into.lines.size();
    squeeze_line(text, at + length, stop, into);
    if (into.lines.size() > lines && has_error_level(line.substr(0, length))) {
      into.error_lines.push_back(into.lines[lines]);
    }
    at = stop + 1;
  }
  // Shows that the text's last word is not cut off.
  if (end == text.size() && end > begin && (text.back() == '\n' || text.back() == '\r')) {
    into.letters.push_back('\n');
    into.at.push_back(end - 1);
  }
  return into;
}

}  // namespace

Squeezed squeeze(std::string_view text, std::size_t begin, std::size_t end, std::string_view pattern) {
  return squeeze_lines(text, begin, end, [&](std::string_view line) {
    // The pattern is part of the same text, so this compares places: the line lies after the pattern's.
    const bool later = !pattern.empty() && line.data() > pattern.data();
    return std::max(prefix_length(line), later ? shared_prefix(line, pattern) : 0);
  });
}

std::optional<Squeezed> squeeze_alike(std::string_view text, std::size_t begin, std::size_t end) {
  std::string_view before;
  bool more = false;
  Squeezed squeezed = squeeze_lines(text, begin, end, [&](std::string_view line) {
    const std::size_t known = prefix_length(line);
    const std::size_t shared = shared_prefix(line, before);
    if (!line.empty()) before = line;
    more |= shared > known;
    return std::max(known, shared);
  });
  return more ? std::optional(std::move(squeezed)) : std::nullopt;
}

}  // namespace ullage::read
