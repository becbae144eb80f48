// SPDX-License-Identifier: Apache-2.0
#pragma once

// The progress line of a picture.

#include "program/progress.h"

#include <cstdint>
#include <string>

namespace ullage::upscale {

// "photo.png  tile 12/43  1.85 GiB of 2.00 GiB  3 min 20 s left"
inline std::string progress_line(const std::string& name, std::int64_t done, std::int64_t all,
                                 const program::Pace& pace) {
  return name + "  tile " + std::to_string(done) + "/" + std::to_string(all) + to_string(pace);
}

}  // namespace ullage::upscale
