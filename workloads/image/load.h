// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads one picture for a program that works on square pictures.

#include "ullage/base/result.h"

#include "image/picture.h"

#include <string>

namespace ullage::image {

// Returns the picture at `path`, side x side x 3, as torchvision's Resize(side), CenterCrop(side) make it from Pillow's
// convert('RGB'). Errors: those of decode(), and BadArgument if `side` is 0 or the square has more than kMaxPixels.
// Memory: that of decode(), the square, and the few rows of SquareResize.
Result<Picture> load_square_rgb(const std::string& path, std::uint32_t side, const ChargeMemory& charge);

}  // namespace ullage::image
