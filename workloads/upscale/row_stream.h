// SPDX-License-Identifier: Apache-2.0
#pragma once

// A picture on its way through the network, tile by tile (tile.h). Every layer keeps the last rows of its input and
// joins them with those of the next tile. All tiles have the same shapes: rows above and below the picture are zeros,
// which is what the padding of a convolution is.

#include "upscale/network.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace ullage::upscale {

// The last `rows` rows of a stream; zeros before its begin.
class Carry final {
 public:
  explicit Carry(std::int64_t rows) : rows_(rows) {}
  // Returns the kept rows with those of `band`, (1,C,h,W), behind them, and keeps the last ones of both.
  at::Tensor join(const at::Tensor& band);

 private:
  std::int64_t rows_;
  at::Tensor kept_;
};

// What a dense block keeps of what its first four convolutions add.
class DenseCarry final {
 public:
  // `input`: rows [first - 6, first + h). Returns rows [first - 5, first + h - 5).
  at::Tensor push(const DenseBlock& block, const at::Tensor& input, std::int64_t first, std::int64_t height);

 private:
  std::array<Carry, 4> added_ = {Carry(5), Carry(4), Carry(3), Carry(2)};
};

class BlockCarry final {
 public:
  // `input`: rows [first, first + h). Returns rows [first - 15, first + h - 15).
  at::Tensor push(const Block& block, const at::Tensor& input, std::int64_t first, std::int64_t height);

 private:
  Carry input_{15};
  std::array<Carry, 2> between_ = {Carry(6), Carry(6)};
  std::array<DenseCarry, 3> dense_;
};

class RowStream final {
 public:
  // `network` must outlive this. A picture of `height` rows, after folding; tiles of `rows` rows. `tile`: the number of
  // the first one, counted from 0 at the top of the picture; above 0 in rehearsals alone.
  RowStream(const Network& network, std::int64_t height, std::int64_t rows, std::int64_t tile = 0);

  // Takes the rows of the picture that come out, (1,3,h,W) of about 0..1, in the order from top to bottom.
  using TakeRows = std::function<void(const at::Tensor& rows)>;
  // `tile`: the next rows, (1,C,rows,W) bytes, C = 3 fold^2. Rows below the picture must be zeros.
  void push(const at::Tensor& tile, const TakeRows& take);
  // The tiles after which a picture is done.
  static std::int64_t tiles(const NetworkShape& shape, std::int64_t height, std::int64_t rows);
  // True when all rows of the picture have come out. Until then tiles of zeros are pushed.
  bool done() const { return made_ >= height_ << network_.shape.doublings; }

 private:
  at::Tensor features(const at::Tensor& bytes, std::int64_t from, std::int64_t first) const;
  void end(at::Tensor rows, std::int64_t first, const TakeRows& take);

  const Network& network_;
  const std::int64_t height_, rows_;
  std::int64_t first_;     // row of the next tile
  std::int64_t made_ = 0;  // rows that came out
  Carry input_, trunk_{2};
  std::vector<BlockCarry> blocks_;
  std::vector<Carry> up_;
  Carry high_{2}, last_{2};
};

}  // namespace ullage::upscale
