// SPDX-License-Identifier: Apache-2.0
#pragma once

// The PNG part of decode(). A picture that is not interlaced is decoded row by row. An interlaced one needs the whole
// picture in memory, which is charged first.

#include "ullage/base/result.h"

#include "image/input_file.h"
#include "image/picture.h"

namespace ullage::image {

Status decode_png(InputFile& file, RowSink& sink, const ChargeMemory& charge, Pixels pixels);

}  // namespace ullage::image
