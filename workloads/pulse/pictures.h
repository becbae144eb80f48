// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small pictures that faces are searched for, as files: which, whether they will do, and their pixels.

#include "image/picture.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::pulse {

// One search: a picture, and what its results are called.
struct Job {
  std::string picture;
  std::string name;  // "face"; with duplicates "face_1", "face_2", ...
  std::uint32_t side = 0;
};

// The searches for `input`, a picture or a folder whose PNG and JPEG files are taken by name, `duplicates` of each one
// after the other. All pictures are decoded once, so that a bad one is told before the first search: square, of a side
// from 2 that divides `resolution`. NotFound; BadFile, also for two whose results would have the same name.
Result<std::vector<Job>> list_jobs(const std::string& input, std::int64_t duplicates, std::int64_t resolution,
                                   const image::ChargeMemory& charge);

Result<image::Picture> load_picture(const std::string& path, std::int64_t resolution,
                                    const image::ChargeMemory& charge);

}  // namespace ullage::pulse
