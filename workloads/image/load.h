// SPDX-License-Identifier: Apache-2.0
#pragma once

// One picture as a program for square pictures wants it.

#include "ullage/base/result.h"

#include "image/picture.h"

#include <string>

namespace ullage::image {

// The picture at `path` as torchvision's Resize(side), CenterCrop(side) make it from Pillow's convert('RGB'): side x
// side x 3. Errors: those of decode(), and BadArgument for a side of 0 or of more than kMaxPixels in all. Memory: that
// of decode(), the square, and the few rows of SquareResize.
Result<Picture> load_square_rgb(const std::string& path, std::uint32_t side, const ChargeMemory& charge);

}  // namespace ullage::image
