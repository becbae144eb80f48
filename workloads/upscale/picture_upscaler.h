// SPDX-License-Identifier: Apache-2.0
#pragma once

// One picture: takes its rows as they are decoded, and passes on rows of the large picture as they are computed.

#include "image/picture.h"
#include "upscale/jobs.h"
#include "upscale/row_stream.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace ullage::upscale {

// Returns a width or height in pixels of the network's input, of which each has `fold` pixels of the picture. The last
// one may be made up in part.
constexpr std::int64_t folded(std::int64_t pixels, std::int64_t fold) { return (pixels + fold - 1) / fold; }

// Tensors that go through the network side by side: the colours, and the alpha where there is any.
constexpr std::int64_t streams_of(const PictureFacts& facts) { return facts.kind.alpha && !facts.opaque ? 2 : 1; }

class PictureUpscaler final : public image::RowSink {
 public:
  struct Listener {
    // Takes rows of the large picture, (1,3,h,W) of about 0..1, and those of the alpha; undefined: there is none.
    std::function<Status(const at::Tensor& rows, const at::Tensor& alpha)> take;
    // Called after each tile, with the number of tiles done. False: nothing more is computed.
    std::function<bool(std::int64_t done)> go_on;
  };

  // `rows` of a tile. `network` must outlive this. `first_tile`: as for RowStream.
  PictureUpscaler(const Network& network, const PictureFacts& facts, std::int64_t rows, Listener listener,
                  std::int64_t first_tile = 0);

  void start(image::PictureSize size) override;
  void row(std::span<const std::uint8_t> rgba) override;
  // Call it after the last row: computes the rows that are left, unless go_on() returned false. Returns the first error
  // of take().
  Status finish();

 private:
  void push_tile();
  at::Tensor tile(bool alpha) const;

  const Network& network_;
  const PictureFacts facts_;
  const Listener listener_;
  const std::int64_t fold_, width_;  // width in whole squares, as pixels
  const std::size_t row_bytes_;
  const std::int64_t rows_in_tile_;  // of the picture
  RowStream colours_;
  std::optional<RowStream> alpha_;
  std::vector<std::uint8_t> pixels_;      // rgba of the tile that is filled now
  std::vector<std::uint8_t> row_before_;  // the row before the last one, for the reflection below an odd height
  std::vector<std::uint8_t> last_row_;
  std::int64_t filled_ = 0;  // rows of `pixels_`
  std::uint32_t taken_ = 0;  // rows of the picture
  std::int64_t tiles_ = 0;   // computed
  bool stopped_ = false;
  Status status_ = success();
};

}  // namespace ullage::upscale
