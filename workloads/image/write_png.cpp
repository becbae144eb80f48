// SPDX-License-Identifier: Apache-2.0
#include "image/write_png.h"

#include "ullage/base/check.h"

#include "image/png_rows.h"

namespace ullage::image {

Status write_png(const std::string& path, std::uint32_t width, std::uint32_t height, std::span<const std::uint8_t> rgb,
                 std::span<const PngText> texts) {
  ULLAGE_CHECK(
      width > 0 && height > 0 && rgb.size() / 3 / width == height && rgb.size() % (std::size_t{width} * 3) == 0,
      "a picture of width x height x 3 bytes");
  ULLAGE_TRY_VALUE(auto rows, PngRows::begin(path, width, height, PngColour::Rgb, texts));
  ULLAGE_TRY(rows.write(rgb));
  return rows.finish();
}

}  // namespace ullage::image
