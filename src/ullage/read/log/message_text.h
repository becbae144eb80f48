// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes "squeezed" text, the form of a log in which messages are searched. It is in lower case, without white space,
// line breaks, colours, frames drawn around text and line prefixes. So a message reads the same at whatever width it
// was wrapped, even in the middle of a word. A blank stays between two numbers of one line. A line break at the end of
// the whole text stays as '\n': it shows that the last word is not cut off.
//
//   [rank0]: CUDA out of mem|        letters  cudaoutofmemory.triedto...
//   [rank0]: ory. Tried to ..|       lines    0           12

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct Squeezed {
  std::string letters;
  std::vector<std::size_t> at;     // each letter's offset in the text
  std::vector<std::size_t> lines;  // index of the first letter of each line that has any
  // Those of `lines` whose logger's prefix, which was removed, has the level of an error.
  std::vector<std::size_t> error_lines;

  bool line_begins(std::size_t letter) const;
  bool line_ends(std::size_t letter) const {
    return letter >= letters.size() || letters[letter] == '\n' || line_begins(letter);
  }
  // Returns the index one past the last letter of the line that holds this letter.
  std::size_t end_of_line(std::size_t letter) const;
  // Returns the index of the first letter at or after this offset of the text.
  std::size_t letter_at(std::size_t offset) const;
};

// Squeezes [begin, end). `pattern` is the text before a message in its first line, as a view into `text`. If later
// lines begin with the same text, digits aside, it is removed from them as a prefix, too.
Squeezed squeeze(std::string_view text, std::size_t begin, std::size_t end, std::string_view pattern = {});

// Squeezes [begin, end) and also removes the beginning that a line shares with the line before it, for loggers that
// prefix_length does not know. Not for a first search: if two lines say the same, the second would lose its words. None
// if this removes no more than squeeze() does.
std::optional<Squeezed> squeeze_alike(std::string_view text, std::size_t begin, std::size_t end);

// Returns the length of the prefix that `line` and `pattern` share; digits may differ. The prefix ends at the last
// blank after a separator (one of : | ] ) >).
std::size_t shared_prefix(std::string_view line, std::string_view pattern);

}  // namespace ullage::read
