// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a PNG or a JPEG, told apart by their first bytes and not by their names, into rows of RGB.
//
// The pixels are those of Pillow's Image.open(path).convert('RGB'): grey is repeated, palettes are looked up (an index
// past the palette is black), alpha and tRNS are dropped without blending, CMYK is taken as Adobe's (inverted), and
// gamma, colour profiles and EXIF rotation are left alone. Three differences:
// - 16-bit grey PNG without alpha: we take the high byte, as Pillow does for every other 16-bit picture. Pillow clips
// at 255
//   instead, which turns nearly all of such a picture white.
// - JPEG: Pillow carries another version of libjpeg-turbo; the tests allow 2 levels, and saw none.
// - JPEG whose compressed data is broken: Pillow shows what libjpeg guessed. Here it is an error.

#include "ullage/base/result.h"

#include "image/picture.h"

#include <string>

namespace ullage::image {

// Rows go to `sink` as they are decoded, so a failed decode may have sent some. Memory besides: about 0.3 MiB and a few
// rows, and, charged first, the whole picture if the PNG is interlaced (3 bytes a pixel), the coefficients if the JPEG
// has more than one scan (2 bytes for each of 64 in a block), the rows if they are wider than 65,536 pixels. Errors:
// NotFound; System; BadFile for what is no PNG or JPEG, is cut short (a PNG that lacks only its end chunk is taken, as
// Pillow takes it), is damaged, or claims more than kMaxPixels. std::bad_alloc when the system has no memory.
Status decode(const std::string& path, RowSink& sink, const ChargeMemory& charge);

}  // namespace ullage::image
