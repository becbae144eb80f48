// SPDX-License-Identifier: Apache-2.0
#include "image/resize.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <utility>

namespace ullage::image {

SquareResize::SquareResize(std::uint32_t side) : side_(side) { ULLAGE_CHECK(side > 0, "a square has a side"); }

void SquareResize::start(PictureSize size) {
  ULLAGE_CHECK(size.pixels() > 0, "a picture has pixels");
  const std::uint32_t shorter = std::min(size.width, size.height);
  columns_ = Weights(square_side(size.width, shorter, side_));
  rows_ = Weights(square_side(size.height, shorter, side_));
  const std::size_t row_bytes = std::size_t{side_} * 3;
  ring_.assign(row_bytes * rows_.longest(), 0);
  sums_.assign(row_bytes, 0);
  square_.assign(row_bytes * side_, 0);
  taken_ = 0;
  made_ = 0;
}

void SquareResize::row(std::span<const std::uint8_t> rgb) {
  const std::uint32_t y = taken_++;
  // Rows above or below the crop touch no output. Ranges only ever move down, so the next output tells.
  if (made_ == rows_.size() || y < rows_[made_].begin) return;
  resize_columns(rgb, ring_row(y));
  for (; made_ < rows_.size() && rows_[made_].end == y + 1; ++made_) {
    resize_rows(rows_[made_], &square_[made_ * side_ * 3]);
  }
}

void SquareResize::resize_columns(std::span<const std::uint8_t> rgb, std::uint8_t* to) const {
  for (std::size_t x = 0; x < columns_.size(); ++x) {
    const Weights::Taps taps = columns_[x];
    const std::uint8_t* from = &rgb[std::size_t{taps.begin} * 3];
    std::int32_t r = kWeightHalf, g = kWeightHalf, b = kWeightHalf;
    for (const std::int32_t weight : taps.weights) {
      r += from[0] * weight;
      g += from[1] * weight;
      b += from[2] * weight;
      from += 3;
    }
    to[3 * x] = to_sample(r);
    to[3 * x + 1] = to_sample(g);
    to[3 * x + 2] = to_sample(b);
  }
}

void SquareResize::resize_rows(const Weights::Taps& taps, std::uint8_t* to) {
  std::fill(sums_.begin(), sums_.end(), kWeightHalf);
  for (std::uint32_t y = taps.begin; y < taps.end; ++y) {
    const std::uint8_t* from = ring_row(y);
    const std::int32_t weight = taps.weights[y - taps.begin];
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += from[i] * weight;
  }
  std::transform(sums_.begin(), sums_.end(), to, to_sample);
}

Picture SquareResize::take() {
  ULLAGE_CHECK(made_ > 0 && made_ == side_, "the square is not whole: rows are missing");
  made_ = 0;
  return {side_, side_, std::move(square_)};
}

}  // namespace ullage::image
