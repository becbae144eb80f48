// SPDX-License-Identifier: Apache-2.0
// image_dump PATH SIDE: writes the picture's RGB bytes to stdout, for test_against_pillow.py. SIDE 0: as decoded,
// without a resize.
#include "image/load.h"
#include "whole_picture.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

using ullage::image::Picture;

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "image_dump PATH SIDE\n");
    return 2;
  }
  const auto side = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const ullage::Result<Picture> picture =
      side == 0 ? ullage::image::test::decode_whole(argv[1], {}) : ullage::image::load_square_rgb(argv[1], side, {});
  if (!picture) {
    std::fprintf(stderr, "%s\n", picture.error().text().c_str());
    return 3;
  }
  const std::size_t written = std::fwrite(picture->rgb.data(), 1, picture->rgb.size(), stdout);
  return written == picture->rgb.size() && std::fflush(stdout) == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "image_dump: %s\n", e.what());
  return 1;
}
