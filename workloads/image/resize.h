// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes rows as they are decoded, as Pillow does, and crops the result. Computes only the columns and rows inside the
// crop. Holds only the rows from which one output row is made:
//
//   row of the file --columns--> [ring of rows of the new width] --rows--> one row of the new picture
//
// Resizes columns first, as Pillow up to 12 always does, with equal results. Pillow 13 resizes the rows of some tall
// pictures first, which rounds differently: by at most one level if bilinear. With Lanczos, hard edges differ by some
// 50 levels, because its overshoot is clamped between the two passes.

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

inline Resizing lanczos(PictureSize from, PictureSize to) {
  return {whole_side(from.width, to.width), whole_side(from.height, to.height), Filter::Lanczos};
}

class Resize : public RowSink {
 public:
  // Calls `wanted` when the picture's size is known; both its windows must be above zero (ContractError).
  explicit Resize(std::function<Resizing(PictureSize)> wanted) : wanted_(std::move(wanted)) {}

  void start(PictureSize size) override;
  void row(std::span<const std::uint8_t> rgb) override;

  // Returns the new picture. ContractError if rows are still missing.
  Picture take();

 private:
  std::size_t row_bytes() const { return std::size_t{size_.width} * 3; }
  std::uint8_t* ring_row(std::uint32_t y) { return &ring_[y % rows_.longest() * row_bytes()]; }
  void resize_columns(std::span<const std::uint8_t> rgb, std::uint8_t* to) const;
  void resize_rows(const Weights::Taps& taps, std::uint8_t* to);

  std::function<Resizing(PictureSize)> wanted_;
  PictureSize size_;  // the new picture's
  Weights columns_, rows_;
  std::vector<std::uint8_t> ring_;  // input row y, with its columns resized, is at y % longest
  std::vector<std::int32_t> sums_;  // sums for one output row
  std::vector<std::uint8_t> rgb_;
  std::uint32_t taken_ = 0;  // input rows so far
  std::size_t made_ = 0;     // output rows so far
};

// torchvision's Resize(side) and CenterCrop(side), bilinear. Besides the square it holds at most 2 * shorter side /
// side + 3 rows of 3 * side bytes: 83 KB for the largest square picture and a side of 256.
class SquareResize final : public Resize {
 public:
  // `side` in pixels. ContractError if it is zero.
  explicit SquareResize(std::uint32_t side);
};

// Resizes a whole picture that is in memory, with Lanczos. Both sides must be above zero.
Picture resize_lanczos(const Picture& picture, PictureSize size);

}  // namespace ullage::image
