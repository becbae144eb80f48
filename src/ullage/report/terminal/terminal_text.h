// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text of unknown origin made fit for a terminal: no byte of it can move the cursor, change a colour or hide a word,
// and its width in columns is known.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::report {

// One line. Control characters, also those of C1, line breaks, marks that turn the direction of writing and invisible
// characters become a space or '?', and so does what is not UTF-8; without `unicode` everything beyond ASCII does.
std::string clean(std::string_view text, bool unicode);

// Columns that a cleaned text takes: wide characters (Chinese, emoji) are two, combining marks none.
std::size_t columns(std::string_view cleaned);

// At most `width` columns of a cleaned text; a longer one ends in "...". The end is kept instead where `keep_end`, as
// of a path, whose file name is at the end.
std::string clip(std::string_view cleaned, std::size_t width, bool keep_end = false);

// The lines of a cleaned text, broken at blanks where there are any. At least one line; no line is wider than `width`.
std::vector<std::string> wrap(std::string_view cleaned, std::size_t width);

// A cleaned text followed by blanks up to `width` columns.
std::string padded(std::string_view cleaned, std::size_t width);

}  // namespace ullage::report
