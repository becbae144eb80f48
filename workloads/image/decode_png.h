// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of decode() for PNG. Non-interlaced pictures pass by rows; interlaced ones need the whole picture, charged
// first.

#include "ullage/base/result.h"

#include "image/input_file.h"
#include "image/picture.h"

namespace ullage::image {

Status decode_png(InputFile& file, RowSink& sink, const ChargeMemory& charge);

}  // namespace ullage::image
