// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lines of a log: where they begin and end, and what terminals and loggers add around a program's own words.
// The search for a line's ends stops after kLongestLine bytes, so a log that is one line of 100 MB costs no more.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ullage::read {

inline constexpr std::size_t kLongestLine = std::size_t{16} * 1024;  // bytes; a longer line's rest counts as a line

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// [begin, end) without the line break. A bare carriage return ends a line too: progress bars overwrite themselves.
struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

Line line_at(std::string_view text, std::size_t offset);

// Returns the nearest line before / after this one that is not blank. None at the ends of the text, beyond kLongestLine
// blanks, or if no line break follows because the line is longer than kLongestLine.
std::optional<Line> line_before(std::string_view text, const Line& line);
std::optional<Line> line_after(std::string_view text, const Line& line);

// Returns the length of the terminal's escape sequence that begins at `at`, or 0. "[31m" counts too: pasting often
// loses its escape character.
std::size_t escape_length(std::string_view text, std::size_t at);

// Returns the length of the prefix that loggers and launchers put before a line: "[rank0]: ", "(pid=12) ", "0: ",
// "ERROR 04-01 23:46:56 [engine.py:160] ", "2025-01-01T00:00:00Z stderr F ", "web-1  | ". Indentation after it is not
// included.
std::size_t prefix_length(std::string_view line);

// Returns whether a line's prefix has the level of an error: "ERROR 04-01 23:46:56 ".
bool has_error_level(std::string_view prefix);

// Returns the rank that the line's prefix names: "[rank3]:", "[3]:", "[1,3]<stderr>:", "3: ", "rank=3".
std::optional<unsigned> rank_of(std::string_view line);

// Makes text fit for reports. Removes escape sequences, and white space at both ends. Writes one blank for each run of
// white space and control characters within, and '?' for each byte that is not UTF-8. The result has at most `longest`
// bytes.
std::string clean(std::string_view raw, std::size_t longest);

}  // namespace ullage::read
