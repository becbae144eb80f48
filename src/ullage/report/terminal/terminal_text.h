// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes text of unknown origin safe for a terminal. The result cannot move the cursor, change a color or hide a word,
// and its width in columns is known.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::report {

using Lines = std::vector<std::string>;

// Returns the text as one line. Line breaks and tabs become blanks. Other control characters (C1 too), marks that
// change the direction of writing, invisible characters and bytes that are not UTF-8 become '?'. Without `unicode`,
// each character beyond ASCII becomes '?' too.
std::string clean(std::string_view text, bool unicode);

// Returns the columns of a cleaned text: wide characters (Chinese, emoji) have two, combining marks none.
std::size_t columns(std::string_view cleaned);

// Returns at most `width` columns of a cleaned text; a longer one ends in "...". With `keep_end` its end is kept
// instead, after "...", as for a path, which has the file's name at its end. If `width` is below 4, a longer text gives
// its beginning without dots, whatever `keep_end` says.
std::string clip(std::string_view cleaned, std::size_t width, bool keep_end = false);

// Returns the lines of a cleaned text, broken at blanks if there are any. There is at least one line, and none is wider
// than `width`. A `width` below 2 counts as 2, because a wide character needs two columns.
Lines wrap(std::string_view cleaned, std::size_t width);

// Returns a cleaned text with blanks added up to `width` columns; a wider text stays as it is.
std::string padded(std::string_view cleaned, std::size_t width);

}  // namespace ullage::report
