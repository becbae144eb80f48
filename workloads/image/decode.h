// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes a PNG or a JPEG to rows of RGB or RGBA. The first bytes decide which it is, not the file's name.
//
// The pixels are those of Pillow's Image.open(path).convert('RGB'). Grey is repeated, and palettes are looked up; an
// index past the palette is black. Alpha and tRNS are dropped without blending. CMYK is taken as Adobe's (inverted).
// Gamma, colour profiles and EXIF rotation are left alone. With Pixels::Rgba they are those of convert('RGBA'). Three
// differences:
// - 16-bit grey PNG without alpha: the high byte is taken, as Pillow does for every other 16-bit picture.
//   Pillow clips at 255 instead, which turns nearly all of such a picture white.
// - JPEG: Pillow carries another version of libjpeg-turbo; the tests allow 2 levels, and saw none.
// - JPEG whose compressed data is broken: Pillow shows what libjpeg guessed. Here it is an error.

#include "ullage/base/result.h"

#include "image/picture.h"

#include <string>

namespace ullage::image {

// Sends rows to `sink` as they are decoded, so a failed decode may have sent some. Takes about 0.3 MiB and a few rows.
// It first charges what grows with the picture. If the PNG is interlaced, that is the whole picture (3 or 4 bytes a
// pixel). If the JPEG has more than one scan, it is the coefficients (64 in a block, 2 bytes each). If a PNG's rows are
// wider than 65,536 pixels, it is the rows. Errors: NotFound; System; BadFile if the file is no PNG or JPEG, is cut
// short or damaged, or claims more than kMaxPixels. A PNG that lacks only its end chunk is accepted, as in Pillow.
// Throws std::bad_alloc if the system has no memory.
Status decode(const std::string& path, RowSink& sink, const ChargeMemory& charge, Pixels pixels = Pixels::Rgb);

}  // namespace ullage::image
