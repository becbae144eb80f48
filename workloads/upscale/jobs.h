// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which pictures are read and what is written for each, checked before the first one is computed.

#include "image/picture.h"
#include "image/png_rows.h"
#include "ullage/base/result.h"
#include "upscale/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::upscale {

// What is known of a picture before it is computed.
struct PictureFacts {
  image::PictureSize size;
  image::PictureKind kind;
  bool opaque = true;  // no pixel is transparent

  image::PngColour colour() const {
    if (kind.grey) return kind.alpha ? image::PngColour::GreyAlpha : image::PngColour::Grey;
    return kind.alpha ? image::PngColour::Rgba : image::PngColour::Rgb;
  }
};

struct Job {
  std::string picture;
  std::string out;
  PictureFacts facts;
};

// Decodes the whole picture, so that a bad one is reported. NotFound, BadFile, System.
Result<PictureFacts> look_at(const std::string& path, const image::ChargeMemory& charge);

// Lists the pictures, looks at each and makes the folder of what is written. The result for a folder is a folder, with
// NAME.png for each picture. Errors of look_at(). BadArgument if a result exists and --force was not given, cannot be
// written, would replace its own picture, or belongs to two pictures. Also BadArgument if a picture is larger than PNG
// allows.
Result<std::vector<Job>> list_jobs(const Options& options, std::int64_t scale, const image::ChargeMemory& charge);

}  // namespace ullage::upscale
