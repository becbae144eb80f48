// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sink that keeps every row, for tests that check the output of decode().

#include "image/decode.h"

#include <string>

namespace ullage::image::test {

class WholePicture final : public RowSink {
 public:
  void start(PictureSize size) override { picture.width = size.width, picture.height = size.height; }
  void row(std::span<const std::uint8_t> rgb) override {
    picture.rgb.insert(picture.rgb.end(), rgb.begin(), rgb.end());
  }
  Picture picture;
};

inline Result<Picture> decode_whole(const std::string& path, const ChargeMemory& charge) {
  WholePicture whole;
  if (Status decoded = decode(path, whole, charge); !decoded) return decoded.error();
  return whole.picture;
}

}  // namespace ullage::image::test
