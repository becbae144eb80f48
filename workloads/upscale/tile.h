// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many rows go through the network at a time, and how many bytes that takes.
//
// A tile is a band of rows, as wide as the picture. A convolution of 3 x 3 needs one row above and one below. So each
// layer's tile lies one row behind the tile of the layer before it, and keeps the rows that its next tile needs:
//
//   input   |== tile n-1 ==|== tile n ==|
//   layer 1  |=============|============|         the margin of a tile is what was kept of the one before, at every
//   layer 2 |=============|============|          layer. No row is computed twice, and no row sees a cut: it has the
//   layer 3|=============|============|           same operands as without tiles
//
// So memory grows with the width of the picture, and not with its height.

#include "ullage/base/bytes.h"
#include "upscale/model_file.h"

#include <cstdint>

namespace ullage::upscale {

inline constexpr std::int64_t kMostRows = 4096;

// Rows of a tile that the last layers, whose rows are 2^doublings times as long, take at a time.
constexpr std::int64_t rows_at_the_end(std::int64_t rows) { return rows < 4 ? 1 : rows / 4; }

// Bytes of tensors for a picture of `width` pixels of the network (after folding), without the weights. These are upper
// estimates: runs took up to 1 % less.
struct TileBytes {
  Bytes kept;     // from tile to tile
  Bytes at_once;  // more, while a tile is computed
};
// `streams`: pictures that go through the network side by side: 2 if alpha does. `element`: bytes of a figure.
TileBytes tile_bytes(const NetworkShape& shape, std::int64_t width, std::int64_t rows, std::int64_t streams,
                     Bytes element);

// Returns the rows of a tile: the most, of 64, 32, ... 1, with which both of TileBytes together take no more than
// `room`. If what is kept leaves no room even for one row, it has to be moved out between its uses. Then returns the
// most rows with which at_once takes at most half of `room`, so that less is moved for each row; 1 if no number does.
std::int64_t choose_rows(const NetworkShape& shape, std::int64_t width, std::int64_t streams, Bytes element,
                         Bytes room);

// The largest number of rows that choose_rows() returns.
inline constexpr std::int64_t kMostChosenRows = 64;

// The rows of a tile without a budget.
inline constexpr std::int64_t kUsualRows = 32;

}  // namespace ullage::upscale
