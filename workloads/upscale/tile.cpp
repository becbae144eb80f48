// SPDX-License-Identifier: Apache-2.0
#include "upscale/tile.h"

#include <algorithm>

namespace ullage::upscale {
namespace {

std::int64_t floats_kept(const NetworkShape& shape) {
  const std::int64_t features = shape.features, growth = shape.growth;
  // A block keeps 15 rows of its input, and 6 rows of the inputs of its second and third dense block. Of what the first
  // four convolutions of a dense block add, it keeps 5, 4, 3 and 2 rows.
  const std::int64_t block = std::int64_t{15 + 6 + 6} * features + 3 * std::int64_t{5 + 4 + 3 + 2} * growth;
  std::int64_t kept = shape.blocks * block + 2 * features;  // and two rows before the trunk's last convolution
  for (std::int64_t i = 1; i <= shape.doublings; ++i) kept += std::int64_t{2} * features * (std::int64_t{1} << i);
  return kept + std::int64_t{4} * features * (std::int64_t{1} << shape.doublings);
}

// The floats held while a dense block's last convolution runs.
std::int64_t floats_of_block(const NetworkShape& shape, std::int64_t rows) {
  const std::int64_t features = shape.features, growth = shape.growth;
  const std::int64_t inputs = (rows + 15) * features + (rows + 6) * features;
  const std::int64_t added = (4 * rows + 5 + 4 + 3 + 2) * growth;
  const std::int64_t joined = (rows + 2) * (features + 4 * growth);
  return inputs + added + joined + 2 * rows * features;
}

// The floats held where the last layers are widest: rows joined with the two before them, and the rows that come in or
// go out.
std::int64_t floats_of_end(const NetworkShape& shape, std::int64_t rows) {
  const std::int64_t factor = std::int64_t{1} << shape.doublings;
  const std::int64_t wide = rows_at_the_end(rows) * factor;
  return 2 * rows * shape.features + (2 * wide + 2) * factor * shape.features;
}

}  // namespace

TileBytes tile_bytes(const NetworkShape& shape, std::int64_t width, std::int64_t rows, std::int64_t streams,
                     Bytes element) {
  const auto bytes = [&](std::int64_t floats) { return element * static_cast<std::uint64_t>(floats * width); };
  // The input is kept as bytes, for as many rows as the trunk lags behind, and once more while a tile is added.
  const Bytes input{static_cast<std::uint64_t>((shape.lag() + 1 + rows) * shape.inputs() * width)};
  TileBytes all;
  all.kept = (bytes(floats_kept(shape)) + input) * static_cast<std::uint64_t>(streams);
  all.at_once = input + bytes(std::max(floats_of_block(shape, rows), floats_of_end(shape, rows)));
  return all;
}

std::int64_t choose_rows(const NetworkShape& shape, std::int64_t width, std::int64_t streams, Bytes element,
                         Bytes room) {
  for (std::int64_t rows = kMostChosenRows; rows > 0; rows /= 2) {
    const TileBytes bytes = tile_bytes(shape, width, rows, streams, element);
    if (bytes.kept + bytes.at_once <= room) return rows;
  }
  for (std::int64_t rows = kMostChosenRows; rows > 1; rows /= 2) {
    if (tile_bytes(shape, width, rows, streams, element).at_once * 2 <= room) return rows;
  }
  return 1;
}

}  // namespace ullage::upscale
