// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a PNG row by row, so that a picture larger than memory can be written. For a picture that is there as a whole,
// write_png.h is a single call.

#include "ullage/base/result.h"

#include "image/png_text.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ullage::image {

// The value is the bytes of a pixel.
enum class PngColour : std::uint8_t { Grey = 1, GreyAlpha = 2, Rgb = 3, Rgba = 4 };

class PngRows final {
 public:
  // Neither side may be zero (ContractError). Writes under a new name in the folder of `path`; finish() renames the
  // file. `texts` are written before the pixels. System: the file cannot be made. Throws std::bad_alloc if libpng gets
  // no memory; it takes about six rows and 0.3 MiB.
  static Result<PngRows> begin(const std::string& path, std::uint32_t width, std::uint32_t height, PngColour colour,
                               std::span<const PngText> texts = {});
  PngRows(PngRows&& other) noexcept;
  PngRows& operator=(PngRows&&) = delete;
  ~PngRows();  // without finish(): removes what was written

  std::uint32_t width() const;
  std::uint32_t rows_left() const;  // that were not written yet

  // Appends whole rows, one or several; ContractError if they are cut or too many. System: they cannot be written.
  Status write(std::span<const std::uint8_t> rows);
  // ContractError if rows are missing.
  Status finish();

 private:
  struct Writer;
  explicit PngRows(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

}  // namespace ullage::image
