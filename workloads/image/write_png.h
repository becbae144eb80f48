// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a picture for people to look at.

#include "ullage/base/result.h"

#include "image/png_text.h"

#include <cstdint>
#include <span>
#include <string>

namespace ullage::image {

// `rgb` has height x width x 3 bytes, and neither side is zero; ContractError otherwise. Writes under a new name in the
// folder of `path` and renames the file when it is whole. So no reader sees half a picture, and an old picture survives
// a full disk. On an error (System) the new file is removed. `texts` are written before the pixels.
Status write_png(const std::string& path, std::uint32_t width, std::uint32_t height, std::span<const std::uint8_t> rgb,
                 std::span<const PngText> texts = {});

}  // namespace ullage::image
