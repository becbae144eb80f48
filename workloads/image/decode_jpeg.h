// SPDX-License-Identifier: Apache-2.0
#pragma once

// The JPEG part of decode(). A picture in one scan is decoded row by row. One of several scans (progressive) needs the
// coefficients of the whole picture, which are charged first.

#include "ullage/base/result.h"

#include "image/input_file.h"
#include "image/picture.h"

namespace ullage::image {

Status decode_jpeg(InputFile& file, RowSink& sink, const ChargeMemory& charge, Pixels pixels);

}  // namespace ullage::image
