// SPDX-License-Identifier: Apache-2.0
// write_text_png PATH [KEYWORD TEXT]...: writes a picture of 2 x 1 pixels with these texts, for
// test_against_pillow.py.
#include "image/write_png.h"

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "write_text_png PATH [KEYWORD TEXT]...\n"), 2;
  std::vector<ullage::image::PngText> texts;
  for (int i = 2; i + 1 < argc; i += 2) texts.push_back({argv[i], argv[i + 1]});
  const std::vector<std::uint8_t> rgb = {1, 2, 3, 4, 5, 6};
  const ullage::Status written = ullage::image::write_png(argv[1], 2, 1, rgb, texts);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
  return written ? 0 : 1;
}
