// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words inside a PNG file, such as what the picture was made from.

#include <string>

namespace ullage::image {

struct PngText {
  std::string keyword;  // "comment": 1 to 79 printable ASCII characters, no space at its ends nor two in a row
  std::string text;     // UTF-8
};

// As the file holds it: Latin-1 where that has all the characters (a tEXt chunk), as Pillow's PngInfo.add_text() does,
// else UTF-8 (iTXt). Bytes that are no UTF-8 become U+FFFD, and so does a zero, which would end the text.
struct StoredText {
  std::string bytes;
  bool latin1 = true;
};
StoredText stored_text(const std::string& utf8);

bool is_png_keyword(const std::string& keyword);

}  // namespace ullage::image
