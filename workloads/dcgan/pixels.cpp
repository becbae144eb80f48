// SPDX-License-Identifier: Apache-2.0
#include "dcgan/pixels.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <array>

namespace ullage::dcgan {
namespace {

constexpr std::uint32_t kColumns = 8;
constexpr std::uint32_t kPadding = 2;

std::array<float, 256> normalised_bytes() {
  std::array<float, 256> values{};
  for (std::size_t b = 0; b < values.size(); ++b) values[b] = (static_cast<float>(b) / 255.0f - 0.5f) / 0.5f;
  return values;
}

// NaN, from a run that diverged, becomes 0.
std::uint8_t to_byte(float unit) {
  const float scaled = unit * 255.0f + 0.5f;
  return scaled >= 255.0f ? 255 : scaled > 0.0f ? static_cast<std::uint8_t>(scaled) : 0;
}

}  // namespace

void to_planes(std::span<const std::uint8_t> rgb, std::uint32_t size, float* planes) {
  static const std::array<float, 256> kValues = normalised_bytes();
  const std::size_t plane = std::size_t{size} * size;
  ULLAGE_CHECK(rgb.size() == 3 * plane, "a picture has three bytes a pixel");
  for (std::size_t i = 0; i < plane; ++i) {
    planes[i] = kValues[rgb[3 * i]];
    planes[plane + i] = kValues[rgb[3 * i + 1]];
    planes[2 * plane + i] = kValues[rgb[3 * i + 2]];
  }
}

GridSize grid_size(std::uint32_t count, std::uint32_t size) {
  ULLAGE_CHECK(count > 0, "a grid has a picture");
  if (count == 1) return {1, 1, size, size};
  const std::uint32_t columns = std::min(count, kColumns);
  const std::uint32_t rows = (count + columns - 1) / columns;
  return {columns, rows, columns * (size + kPadding) + kPadding, rows * (size + kPadding) + kPadding};
}

Grid make_grid(const float* pictures, std::uint32_t count, std::uint32_t size) {
  const GridSize shape = grid_size(count, size);
  const std::size_t plane = std::size_t{size} * size;
  const auto [least, largest] = std::minmax_element(pictures, pictures + count * 3 * plane);
  const float low = *least;
  const float range = std::max(*largest - low, 1e-5f);
  const std::uint32_t padding = count == 1 ? 0 : kPadding;

  Grid grid{shape.width, shape.height, std::vector<std::uint8_t>(std::size_t{3} * shape.width * shape.height)};
  for (std::uint32_t k = 0; k < count; ++k) {
    const float* picture = pictures + k * 3 * plane;
    const std::uint32_t left = padding + k % shape.columns * (size + padding);
    const std::uint32_t top = padding + k / shape.columns * (size + padding);
    for (std::uint32_t y = 0; y < size; ++y) {
      std::uint8_t* out = grid.rgb.data() + 3 * (std::size_t{top + y} * shape.width + left);
      for (std::uint32_t x = 0; x < size; ++x) {
        for (std::size_t channel = 0; channel < 3; ++channel) {
          *out++ = to_byte((picture[channel * plane + std::size_t{y} * size + x] - low) / range);
        }
      }
    }
  }
  return grid;
}

}  // namespace ullage::dcgan
