// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a picture is here: 8-bit RGB, rows top to bottom, three bytes a pixel, no padding. And the two seams of reading
// one: where its rows go, and who is asked before much memory is taken.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::image {

// In pixels.
struct PictureSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  friend bool operator==(PictureSize, PictureSize) = default;
  std::uint64_t pixels() const { return std::uint64_t{width} * height; }
  // As RGB. Any two 31-bit sides stay below 2^64.
  Bytes bytes() const { return Bytes{pixels()} * 3; }
};

struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;  // height x width x 3
};

// Takes a picture row by row: start() once, then row() `height` times, unless the file turns out bad on the way.
// What a sink throws passes through the decoder, which releases all it holds.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void start(PictureSize size) = 0;
  // 3 * width bytes, valid during the call.
  virtual void row(std::span<const std::uint8_t> rgb) = 0;
};

// Asked before memory is taken that grows with the whole picture. `what` says for what, for a message. The memory is
// given back to the system before the returned guard is let go. Empty: no limit. May throw; that passes through the
// decoder.
using ChargeMemory = std::function<std::shared_ptr<void>(Bytes bytes, std::string_view what)>;

inline std::shared_ptr<void> charge_if_asked(const ChargeMemory& charge, Bytes bytes, std::string_view what) {
  return charge ? charge(bytes, what) : nullptr;
}

// Where Pillow raises DecompressionBombError (twice PIL.Image.MAX_IMAGE_PIXELS): half a GiB of RGB. Larger claims are
// refused before any memory is taken for them.
constexpr std::uint64_t kMaxPixels = 178'956'970;

}  // namespace ullage::image
