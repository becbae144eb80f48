// SPDX-License-Identifier: Apache-2.0
#include "upscale/row_stream.h"

#include "upscale/tile.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace ullage::upscale {
namespace {

using at::Tensor;

constexpr double kResidual = 0.2;  // what a dense block, and a block, multiply their outputs by

}  // namespace

Tensor Carry::join(const Tensor& band) {
  if (!kept_.defined()) {
    kept_ = at::empty({1, band.size(1), rows_, band.size(3)}, band.options(), at::MemoryFormat::ChannelsLast).zero_();
  }
  Tensor joined = at::cat({kept_, band}, 2);
  kept_ = Tensor();
  kept_ = joined.narrow(2, joined.size(2) - rows_, rows_).clone(at::MemoryFormat::ChannelsLast);
  return joined;
}

Tensor DenseCarry::push(const DenseBlock& block, const Tensor& input, std::int64_t first, std::int64_t height) {
  const std::int64_t rows = input.size(2) - 6;
  std::vector<Tensor> joined = {input};  // each begins with row first - 6
  for (std::int64_t k = 0; k < 4; ++k) {
    std::vector<Tensor> parts;
    for (const Tensor& one : joined) parts.push_back(one.narrow(2, 4 - k, rows + 2));
    const auto i = static_cast<std::size_t>(k);
    const Tensor added = block[i](parts.size() == 1 ? parts[0] : at::cat(parts, 1), first - 1 - k, height);
    parts.clear();
    joined.push_back(added_[i].join(added));
  }
  std::vector<Tensor> parts;
  for (const Tensor& one : joined) parts.push_back(one.narrow(2, 0, rows + 2));
  joined.erase(joined.begin() + 1, joined.end());  // `parts` keeps what is needed until they are joined
  Tensor all = at::cat(parts, 1);
  parts.clear();
  Tensor output = block[4](all, first - 5, height);
  return output.mul_(kResidual).add_(input.narrow(2, 1, rows));
}

Tensor BlockCarry::push(const Block& block, const Tensor& input, std::int64_t first, std::int64_t height) {
  // Above the picture there is nothing yet to keep, and once the last row has come out there is nothing left to do.
  if (first + input.size(2) <= 0 || first - 15 >= height) return at::zeros_like(input);
  const std::int64_t rows = input.size(2);
  const Tensor joined = input_.join(input);  // from row first - 15
  Tensor x = dense_[0].push(block[0], joined.narrow(2, 9, rows + 6), first, height);
  x = dense_[1].push(block[1], between_[0].join(x), first - 5, height);
  x = dense_[2].push(block[2], between_[1].join(x), first - 10, height);
  return x.mul_(kResidual).add_(joined.narrow(2, 0, rows));
}

RowStream::RowStream(const Network& network, std::int64_t height, std::int64_t rows, std::int64_t tile)
    : network_(network),
      height_(height),
      rows_(rows),
      first_(tile * rows),
      input_(network.shape.lag() + 1),
      blocks_(network.blocks.size()),
      up_(network.up.size(), Carry(2)) {}

std::int64_t RowStream::tiles(const NetworkShape& shape, std::int64_t height, std::int64_t rows) {
  // The last layers lag by the rows that their own convolutions need: fewer than two rows of the trunk.
  std::int64_t behind = 0;
  for (std::int64_t i = 0; i < shape.doublings; ++i) behind = 2 * behind + 1;
  behind += 2;
  const std::int64_t factor = std::int64_t{1} << shape.doublings;
  const std::int64_t last = height + shape.lag() + (behind + factor - 1) / factor;
  return (last + rows - 1) / rows;
}

// `bytes`: rows of the picture from row `from` on. Returns rows [first, first + rows_) of the first layer.
Tensor RowStream::features(const Tensor& bytes, std::int64_t from, std::int64_t first) const {
  const Tensor input = bytes.narrow(2, first - 1 - from, rows_ + 2).to(network_.type).div_(255);
  return network_.first(input, first, height_);
}

void RowStream::push(const Tensor& tile, const TakeRows& take) {
  const std::int64_t lag = network_.shape.lag();
  const Tensor bytes = input_.join(tile);
  const std::int64_t from = first_ - lag - 1;
  std::int64_t first = first_ - 1;
  first_ += rows_;
  Tensor x = features(bytes, from, first);
  for (std::size_t i = 0; i < blocks_.size(); ++i, first -= 15) {
    x = blocks_[i].push(network_.blocks[i], x, first, height_);
  }
  x = network_.trunk(trunk_.join(x), --first, height_);
  if (first + rows_ <= 0) return;
  // The features are computed again rather than kept for so many rows: that is a thousandth of the work.
  x.add_(features(bytes, from, first));
  const std::int64_t part = rows_at_the_end(rows_);
  for (std::int64_t done = 0; done < rows_ && !this->done(); done += part) {
    end(x.narrow(2, done, std::min(part, rows_ - done)), first + done, take);
  }
}

void RowStream::end(Tensor x, std::int64_t first, const TakeRows& take) {
  std::int64_t height = height_;
  for (std::size_t i = 0; i < up_.size(); ++i) {
    x = at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
    first *= 2;
    height *= 2;
    x = up_[i].join(x);
    x = network_.up[i](x, --first, height);
  }
  x = high_.join(x);
  x = network_.high(x, --first, height);
  x = last_.join(x);
  x = network_.last(x, --first, height);
  const std::int64_t begin = std::max<std::int64_t>(first, 0), end = std::min(first + x.size(2), height);
  if (begin >= end) return;
  take(x.narrow(2, begin - first, end - begin));
  made_ = end;
}

}  // namespace ullage::upscale
