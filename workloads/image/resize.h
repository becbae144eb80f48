// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision's Resize(side) and CenterCrop(side) on Pillow's bilinear resize, of rows as they come. Only columns and
// rows inside the crop are computed, and only as many rows are held as one output row is made of:
//
//   row of the file --columns--> [ring of `side`-wide rows] --rows--> one row of the square
//
// Columns first, as Pillow up to 12 does always, and equal to it. Pillow 13 takes the rows of some tall pictures first,
// which rounds otherwise: at most one level apart. At most 2 * shorter side / side + 3 rows of 3 * side bytes: about 80
// KB for the largest picture there is.

#include "image/picture.h"
#include "image/resample.h"

namespace ullage::image {

class SquareResize final : public RowSink {
 public:
  // `side` in pixels, above zero. ContractError otherwise.
  explicit SquareResize(std::uint32_t side);

  void start(PictureSize size) override;
  void row(std::span<const std::uint8_t> rgb) override;

  // The square, once every row was given; ContractError before.
  Picture take();

 private:
  std::uint8_t* ring_row(std::uint32_t y) { return &ring_[std::size_t{y % rows_.longest()} * side_ * 3]; }
  void resize_columns(std::span<const std::uint8_t> rgb, std::uint8_t* to) const;
  void resize_rows(const Weights::Taps& taps, std::uint8_t* to);

  std::uint32_t side_;
  Weights columns_, rows_;
  std::vector<std::uint8_t> ring_;  // input row y, its columns resized, at y % longest
  std::vector<std::int32_t> sums_;  // of one output row
  std::vector<std::uint8_t> square_;
  std::uint32_t taken_ = 0;  // input rows
  std::size_t made_ = 0;     // output rows
};

}  // namespace ullage::image
