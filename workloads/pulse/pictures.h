// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small input pictures: lists the files, checks them and loads their pixels.

#include "image/picture.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::pulse {

// One search: a picture, and the name of its results.
struct Job {
  std::string picture;
  std::string name;  // "face"; with duplicates "face_1", "face_2", ...
  std::uint32_t side = 0;
};

// Lists the searches for `input`, a picture or a folder. A folder's PNG and JPEG files come in the order of their
// names, each `duplicates` times in a row. Decodes every picture once, so that a bad one is reported before the first
// search. A picture must be square, with a side of at least 2 that divides `resolution`. NotFound; System; BadFile,
// also if two results would have the same name.
Result<std::vector<Job>> list_jobs(const std::string& input, std::int64_t duplicates, std::int64_t resolution,
                                   const image::ChargeMemory& charge);

Result<image::Picture> load_picture(const std::string& path, std::int64_t resolution,
                                    const image::ChargeMemory& charge);

}  // namespace ullage::pulse
