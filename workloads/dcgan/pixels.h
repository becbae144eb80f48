// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts pictures between bytes and the floats that the networks see.

#include <cstdint>
#include <span>
#include <vector>

namespace ullage::dcgan {

// Does what torchvision's ToTensor and Normalize(0.5, 0.5) do, to the last bit. Turns `size` x `size` RGB pixels, row
// by row, into three planes of (b / 255 - 0.5) / 0.5. `planes` has room for 3 * size * size values.
void to_planes(std::span<const std::uint8_t> rgb, std::uint32_t size, float* planes);

struct Grid {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;
};

struct GridSize {
  std::uint32_t columns, rows, width, height;
};
GridSize grid_size(std::uint32_t count, std::uint32_t size);

// Draws what torchvision's save_image(normalize=True, nrow=8, padding=2) shows: `count` pictures of three planes each,
// on black. All are scaled together, so that the least value becomes 0 and the largest 255. A single picture has no
// frame.
Grid make_grid(const float* pictures, std::uint32_t count, std::uint32_t size);

}  // namespace ullage::dcgan
