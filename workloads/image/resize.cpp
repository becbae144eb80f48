// SPDX-License-Identifier: Apache-2.0
#include "image/resize.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <utility>

namespace ullage::image {

void Resize::start(PictureSize size) {
  ULLAGE_CHECK(size.pixels() > 0, "a picture has pixels");
  const Resizing wanted = wanted_(size);
  size_ = wanted.size();
  ULLAGE_CHECK(size_.pixels() > 0, "a new picture has pixels");
  columns_ = Weights(wanted.columns, wanted.filter);
  rows_ = Weights(wanted.rows, wanted.filter);
  ring_.assign(row_bytes() * rows_.longest(), 0);
  sums_.assign(row_bytes(), 0);
  rgb_.assign(row_bytes() * size_.height, 0);
  taken_ = 0;
  made_ = 0;
}

void Resize::row(std::span<const std::uint8_t> rgb) {
  const std::uint32_t y = taken_++;
  // Skips rows above or below the crop. Ranges only move down, so it suffices to look at the next output row's.
  if (made_ == rows_.size() || y < rows_[made_].begin) return;
  resize_columns(rgb, ring_row(y));
  for (; made_ < rows_.size() && rows_[made_].end == y + 1; ++made_) {
    resize_rows(rows_[made_], &rgb_[made_ * row_bytes()]);
  }
}

void Resize::resize_columns(std::span<const std::uint8_t> rgb, std::uint8_t* to) const {
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

void Resize::resize_rows(const Weights::Taps& taps, std::uint8_t* to) {
  std::fill(sums_.begin(), sums_.end(), kWeightHalf);
  for (std::uint32_t y = taps.begin; y < taps.end; ++y) {
    const std::uint8_t* from = ring_row(y);
    const std::int32_t weight = taps.weights[y - taps.begin];
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += from[i] * weight;
  }
  std::transform(sums_.begin(), sums_.end(), to, to_sample);
}

Picture Resize::take() {
  ULLAGE_CHECK(made_ > 0 && made_ == size_.height, "the picture is not whole: rows are missing");
  made_ = 0;
  return {size_.width, size_.height, std::move(rgb_)};
}

SquareResize::SquareResize(std::uint32_t side)
    : Resize([side](PictureSize size) -> Resizing {
        const std::uint32_t shorter = std::min(size.width, size.height);
        return {square_side(size.width, shorter, side), square_side(size.height, shorter, side)};
      }) {
  ULLAGE_CHECK(side > 0, "a square has a side");
}

Picture resize_lanczos(const Picture& picture, PictureSize size) {
  Resize resize([size](PictureSize from) { return lanczos(from, size); });
  resize.start({picture.width, picture.height});
  const std::size_t row_bytes = std::size_t{picture.width} * 3;
  for (std::uint32_t y = 0; y < picture.height; ++y) resize.row({&picture.rgb[y * row_bytes], row_bytes});
  return resize.take();
}

}  // namespace ullage::image
