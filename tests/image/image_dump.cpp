// SPDX-License-Identifier: Apache-2.0
// image_dump: answers test_against_pillow.py, a line of stdin each: SIDE PATH. The answer is a line with the count of
// the picture's RGB bytes, then these; or a line "error" and the message. SIDE 0: as decoded, without a resize. One
// process answers all, because its start takes longer than a picture.
#include "image/load.h"
#include "whole_picture.h"

#include <exception>
#include <iostream>
#include <string>

using ullage::image::Picture;

int main() try {
  std::uint32_t side = 0;
  for (std::string path; std::cin >> side && std::getline(std::cin >> std::ws, path);) {
    const ullage::Result<Picture> picture =
        side == 0 ? ullage::image::test::decode_whole(path, {}) : ullage::image::load_square_rgb(path, side, {});
    if (picture) {
      std::cout << picture->rgb.size() << '\n';
      std::cout.write(reinterpret_cast<const char*>(picture->rgb.data()),
                      static_cast<std::streamsize>(picture->rgb.size()));
    } else {
      std::cout << "error " << picture.error().text() << '\n';
    }
    std::cout.flush();
  }
  return std::cin.eof() && std::cout ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "image_dump: " << e.what() << '\n';
  return 1;
}
