// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/terminal/terminal_text.h"

#include "ullage/base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ullage::report {
namespace {

struct Range {
  std::uint32_t first, last;
};

bool in_any(std::uint32_t c, const auto& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [c](Range r) { return c >= r.first && c <= r.last; });
}

// DEL and controls of C1, soft hyphen, invisible characters, marks of direction, separators, surrogates, tags.
constexpr std::array<Range, 10> kHidden = {{{0x7F, 0x9F},
                                            {0xAD, 0xAD},
                                            {0x61C, 0x61C},
                                            {0x180E, 0x180E},
                                            {0x200B, 0x200F},
                                            {0x2028, 0x202E},
                                            {0x2060, 0x206F},
                                            {0xD800, 0xDFFF},
                                            {0xFEFF, 0xFEFF},
                                            {0xE0000, 0xE0FFF}}};
constexpr std::array<Range, 5> kCombining = {
    {{0x300, 0x36F}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}};
// East Asian Wide and Fullwidth, in coarse ranges (Unicode Standard Annex 11).
constexpr std::array<Range, 8> kWide = {{{0x1100, 0x115F},
                                         {0x2E80, 0xA4CF},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE6F},
                                         {0xFF00, 0xFF60},
                                         {0x1F300, 0x1FAFF},
                                         {0x20000, 0x3FFFD}}};

// A byte that is no character counts as one.
std::size_t bytes_of(const Utf8Character& one) { return std::max<std::size_t>(one.length, 1); }

std::size_t width_of(std::uint32_t code) {
  if (code < 0x300) return 1;
  if (in_any(code, kCombining)) return 0;
  return in_any(code, kWide) ? 2 : 1;
}

// Returns the bytes of the longest beginning of a cleaned text that fits `width` columns.
std::size_t fitting(std::string_view text, std::size_t width) {
  std::size_t at = 0, used = 0;
  while (at < text.size()) {
    const Utf8Character c = first_utf8(text.substr(at));
    used += width_of(c.code);
    if (used > width) break;
    at += bytes_of(c);
  }
  return at;
}

}  // namespace

std::string clean(std::string_view text, bool unicode) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character c = first_utf8(text.substr(at));
    const std::string_view bytes = text.substr(at, bytes_of(c));
    at += bytes_of(c);
    if (c.length > 0 && (c.code == '\n' || c.code == '\t' || c.code == '\r')) {
      out += ' ';
    } else if (c.length == 0 || c.code < ' ' || (c.code > 0x7E && (!unicode || in_any(c.code, kHidden)))) {
      out += '?';
    } else {
      out += bytes;
    }
  }
  return out;
}

std::size_t columns(std::string_view cleaned) {
  std::size_t sum = 0;
  for (std::size_t at = 0; at < cleaned.size();) {
    const Utf8Character c = first_utf8(cleaned.substr(at));
    sum += width_of(c.code);
    at += bytes_of(c);
  }
  return sum;
}

std::string clip(std::string_view cleaned, std::size_t width, bool keep_end) {
  const std::size_t all = columns(cleaned);
  if (all <= width) return std::string(cleaned);
  if (width < 4) return std::string(cleaned.substr(0, fitting(cleaned, width)));
  if (!keep_end) return std::string(cleaned.substr(0, fitting(cleaned, width - 3))) + "...";
  std::size_t from = fitting(cleaned, all - (width - 3));
  // A wide character at the cut could make it one column too wide.
  while (columns(cleaned.substr(from)) > width - 3) from += bytes_of(first_utf8(cleaned.substr(from)));
  return "..." + std::string(cleaned.substr(from));
}

std::vector<std::string> wrap(std::string_view cleaned, std::size_t width) {
  width = std::max<std::size_t>(width, 2);  // a wide character needs two
  std::vector<std::string> lines;
  while (columns(cleaned) > width) {
    const std::size_t most = fitting(cleaned, width);
    // A blank just after the last column also ends the line.
    const std::size_t blank = cleaned.rfind(' ', most);
    const bool at_blank = blank != std::string_view::npos && blank > 0;
    lines.emplace_back(cleaned.substr(0, at_blank ? blank : most));
    cleaned.remove_prefix(at_blank ? blank + 1 : most);
  }
  lines.emplace_back(cleaned);
  return lines;
}

std::string padded(std::string_view cleaned, std::size_t width) {
  const std::size_t used = columns(cleaned);
  return std::string(cleaned) + std::string(width > used ? width - used : 0, ' ');
}

}  // namespace ullage::report
