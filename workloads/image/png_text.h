// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text inside a PNG file, such as the prompt that the picture was made from.

#include <string>

namespace ullage::image {

struct PngText {
  std::string keyword;  // "comment": 1 to 79 printable ASCII characters, no space at its ends nor two in a row
  std::string text;     // UTF-8
};

// The text as the file holds it: Latin-1 if that has all its characters (a tEXt chunk), as Pillow's PngInfo.add_text()
// does; otherwise UTF-8 (iTXt). Bytes that are not UTF-8 become U+FFFD. So does a zero, which would end the text.
struct StoredText {
  std::string bytes;
  bool latin1 = true;
};
StoredText stored_text(const std::string& utf8);

bool is_png_keyword(const std::string& keyword);

}  // namespace ullage::image
