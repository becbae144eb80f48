// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pillow's resizes of rows as they come, with a crop of what they make: only columns and rows inside it are computed,
// and only as many rows are held as one output row is made of:
//
//   row of the file --columns--> [ring of rows of the new width] --rows--> one row of the new picture
//
// Columns first, as Pillow up to 12 does always, and equal to it. Pillow 13 takes the rows of some tall pictures first,
// which rounds otherwise: at most one level apart when bilinear, but some 50 levels at hard edges with Lanczos, whose
// overshoot is cut off between the two.

#include "image/picture.h"
#include "image/resample.h"

#include <functional>
#include <utility>

namespace ullage::image {

struct Resizing {
  SideResize columns, rows;
  Filter filter = Filter::Bilinear;

  PictureSize size() const { return {columns.window, rows.window}; }
};

// The whole of a picture.
inline Resizing lanczos(PictureSize from, PictureSize to) {
  return {whole_side(from.width, to.width), whole_side(from.height, to.height), Filter::Lanczos};
}

class Resize : public RowSink {
 public:
  // `wanted` is asked once the size of the picture is known; both windows are above zero (ContractError).
  explicit Resize(std::function<Resizing(PictureSize)> wanted) : wanted_(std::move(wanted)) {}

  void start(PictureSize size) override;
  void row(std::span<const std::uint8_t> rgb) override;

  // The new picture, once every row was given; ContractError before.
  Picture take();

 private:
  std::size_t row_bytes() const { return std::size_t{size_.width} * 3; }
  std::uint8_t* ring_row(std::uint32_t y) { return &ring_[y % rows_.longest() * row_bytes()]; }
  void resize_columns(std::span<const std::uint8_t> rgb, std::uint8_t* to) const;
  void resize_rows(const Weights::Taps& taps, std::uint8_t* to);

  std::function<Resizing(PictureSize)> wanted_;
  PictureSize size_;  // of the new picture
  Weights columns_, rows_;
  std::vector<std::uint8_t> ring_;  // input row y, its columns resized, at y % longest
  std::vector<std::int32_t> sums_;  // of one output row
  std::vector<std::uint8_t> rgb_;
  std::uint32_t taken_ = 0;  // input rows
  std::size_t made_ = 0;     // output rows
};

// torchvision's Resize(side) and CenterCrop(side), bilinear. At most 2 * shorter side / side + 3 rows of 3 * side bytes
// besides the square: about 80 KB for the largest picture there is.
class SquareResize final : public Resize {
 public:
  // `side` in pixels, above zero. ContractError otherwise.
  explicit SquareResize(std::uint32_t side);
};

// A picture in memory, all of it, with Lanczos. Both sides above zero.
Picture resize_lanczos(const Picture& picture, PictureSize size);

}  // namespace ullage::image
