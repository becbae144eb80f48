// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stretch of a log as messages are looked for in it: letters only, in lower case. White space, line breaks, colours,
// frames drawn around text and prefixes of lines are gone, so a message reads the same however it was wrapped, at
// whatever width, even in the middle of a word. Between two numbers of one line a blank stays, and where the text ends
// with a line break, that stays: what stands before it is not cut off.
//
//   [rank0]: CUDA out of mem|        letters  cudaoutofmemory.triedto...
//   [rank0]: ory. Tried to ..|       lines    0             13

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct Squeezed {
  std::string letters;
  std::vector<std::size_t> at;     // of each letter: its offset in the text
  std::vector<std::size_t> lines;  // index of the first letter of each line that has any

  bool line_begins(std::size_t letter) const;
  bool line_ends(std::size_t letter) const {
    return letter >= letters.size() || letters[letter] == '\n' || line_begins(letter);
  }
  // The end of the line that holds this letter.
  std::size_t end_of_line(std::size_t letter) const;
  // Index of the first letter at or behind this offset of the text.
  std::size_t letter_at(std::size_t offset) const;
};

// Of [begin, end). `pattern`: what stands before a message in its first line, a view into `text`. Later lines may
// repeat it, digits aside: that is prefix too.
Squeezed squeeze(std::string_view text, std::size_t begin, std::size_t end, std::string_view pattern = {});

// Of [begin, end), where what a line has in common with the one before it is prefix: for loggers that prefix_length
// does not know. Not for a first look: of two lines that tell the same, the second would lose its words. None where
// that takes out no more than squeeze() does.
std::optional<Squeezed> squeeze_alike(std::string_view text, std::size_t begin, std::size_t end);

// How much of `line` is the same as the beginning of `pattern`, digits aside, up to a separator.
std::size_t shared_prefix(std::string_view line, std::string_view pattern);

}  // namespace ullage::read
