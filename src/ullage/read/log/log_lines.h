// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lines of a log: where they begin and end, and what terminals and loggers put around what a program said.
// Nothing here looks further than kLongestLine bytes, so that a log that is one line of 100 MB costs no more.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ullage::read {

inline constexpr std::size_t kLongestLine = std::size_t{16} * 1024;  // of a longer one the rest counts as another line

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// [begin, end) without the line break. A bare carriage return ends a line too: progress bars overwrite themselves.
struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

Line line_at(std::string_view text, std::size_t offset);

// The line before / after this one that is not blank; none at the ends of the text or beyond kLongestLine.
std::optional<Line> line_before(std::string_view text, const Line& line);
std::optional<Line> line_after(std::string_view text, const Line& line);

// How long the escape sequence of a terminal is that begins here; 0: none does. "[31m", whose escape character was
// lost in pasting, counts.
std::size_t escape_length(std::string_view text, std::size_t at);

// How much of the line is put there by loggers and launchers: "[rank0]: ", "(pid=12) ", "ERROR 04-01 23:46:56
// [engine.py:160] ", "2025-01-01T00:00:00Z stderr F ", "0: ", "web-1  | ". Indentation after it is not of it.
std::size_t prefix_length(std::string_view line);

// The rank that the prefix tells: "[rank3]:", "[3]:", "[1,3]<stderr>:", "3: ", "rank=3".
std::optional<unsigned> rank_of(std::string_view line);

// For people and files: one line, no colours, white space runs as one blank, valid UTF-8, at most `longest` bytes.
std::string clean(std::string_view raw, std::size_t longest);

}  // namespace ullage::read
