// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes of pictures to and from the numbers that the networks see.

#include <cstdint>
#include <span>
#include <vector>

namespace ullage::dcgan {

// torchvision's ToTensor and Normalize(0.5, 0.5): RGB bytes row by row, `size` x `size`, to three planes of (b / 255 -
// 0.5) / 0.5, to the last bit. `planes` has 3 * size * size values.
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

// What torchvision's save_image(normalize=True, nrow=8, padding=2) shows: `count` pictures of three planes each,
// stretched so that the least value of all is 0 and the largest 255, black between them. One picture alone has no
// frame.
Grid make_grid(const float* pictures, std::uint32_t count, std::uint32_t size);

}  // namespace ullage::dcgan
