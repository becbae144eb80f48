// SPDX-License-Identifier: Apache-2.0
#include "upscale/picture_upscaler.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/pixel_unshuffle.h>

#include <algorithm>
#include <utility>

namespace ullage::upscale {
namespace {

using at::Tensor;
constexpr std::size_t kPixel = 4;  // bytes

}  // namespace

PictureUpscaler::PictureUpscaler(const Network& network, const PictureFacts& facts, std::int64_t rows,
                                 Listener listener, std::int64_t first_tile)
    : network_(network),
      facts_(facts),
      listener_(std::move(listener)),
      fold_(network.shape.fold),
      width_(folded(facts.size.width, fold_) * fold_),
      row_bytes_(static_cast<std::size_t>(width_) * kPixel),
      rows_in_tile_(rows * fold_),
      colours_(network, folded(facts.size.height, fold_), rows, first_tile),
      pixels_(row_bytes_ * static_cast<std::size_t>(rows_in_tile_)) {
  if (streams_of(facts) == 2) alpha_.emplace(network, folded(facts.size.height, fold_), rows, first_tile);
}

void PictureUpscaler::start(image::PictureSize size) {
  // The file may have changed since it was looked at.
  if (size != facts_.size) status_ = Error{Error::Kind::BadFile, "the picture changed while it was read", ""};
}

// The side of the network's input is a multiple of `fold`. Missing pixels are reflected, as in the published program.
void PictureUpscaler::row(std::span<const std::uint8_t> rgba) {
  if (!status_ || stopped_) return;
  std::uint8_t* to = &pixels_[static_cast<std::size_t>(filled_) * row_bytes_];
  std::copy(rgba.begin(), rgba.end(), to);
  for (std::size_t x = rgba.size() / kPixel; x < static_cast<std::size_t>(width_); ++x) {
    const std::size_t lacking = x - rgba.size() / kPixel;
    const std::size_t last = rgba.size() / kPixel - 1;
    const std::size_t mirrored = last - std::min(last, lacking + 1);
    std::copy_n(to + mirrored * kPixel, kPixel, to + x * kPixel);
  }
  if (fold_ > 1) {
    std::swap(row_before_, last_row_);
    last_row_.assign(to, to + row_bytes_);
  }
  ++taken_;
  if (++filled_ == rows_in_tile_) push_tile();
}

// Returns (1,C,rows,W) bytes of the tile that is filled.
Tensor PictureUpscaler::tile(bool alpha) const {
  const auto* begin = pixels_.data();
  const Tensor all =
      at::from_blob(const_cast<std::uint8_t*>(begin), {1, rows_in_tile_, width_, 4}, at::kByte).permute({0, 3, 1, 2});
  const Tensor some = alpha ? all.narrow(1, 3, 1).expand({1, 3, -1, -1}) : all.narrow(1, 0, 3);
  return at::pixel_unshuffle(some, fold_).contiguous(at::MemoryFormat::ChannelsLast);
}

void PictureUpscaler::push_tile() {
  std::vector<Tensor> alphas;  // as many as there are parts of rows
  if (alpha_) alpha_->push(tile(true), [&](const Tensor& rows) { alphas.push_back(rows); });
  std::size_t part = 0;
  colours_.push(tile(false), [&](const Tensor& rows) {
    const Tensor alpha = alpha_ ? std::exchange(alphas[part++], {}) : Tensor();
    if (status_) status_ = listener_.take(rows, alpha);
  });
  filled_ = 0;
  stopped_ = !listener_.go_on(++tiles_);
}

Status PictureUpscaler::finish() {
  if (fold_ > 1 && taken_ % static_cast<std::uint32_t>(fold_) != 0) {
    const std::vector<std::uint8_t> mirrored = taken_ > 1 ? row_before_ : last_row_;
    const std::span<const std::uint8_t> pixels(mirrored.data(), std::size_t{facts_.size.width} * kPixel);
    row(pixels);
  }
  while (status_ && !stopped_ && !colours_.done()) {
    std::fill(pixels_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(filled_) * row_bytes_),
              pixels_.end(), std::uint8_t{0});
    push_tile();
  }
  return status_;
}

}  // namespace ullage::upscale
