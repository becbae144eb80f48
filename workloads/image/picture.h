// SPDX-License-Identifier: Apache-2.0
#pragma once

// A picture: 8-bit RGB, rows from top to bottom, three bytes a pixel, no padding. Also the two interfaces of decoding.
// RowSink receives the rows (with alpha, if its program asks for that). ChargeMemory is asked before much memory is
// allocated.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::image {

struct PictureSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  friend bool operator==(PictureSize, PictureSize) = default;
  std::uint64_t pixels() const { return std::uint64_t{width} * height; }
  // Bytes as RGB. Cannot overflow for sides of 31 bits.
  Bytes bytes() const { return Bytes{pixels()} * 3; }
};

struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;  // height x width x 3
};

// How rows are decoded. The alpha of a file without any is 255. The value is the bytes of a pixel.
enum class Pixels : std::uint8_t { Rgb = 3, Rgba = 4 };

// The form of the pixels in a file, which may differ from the decoded rows.
struct PictureKind {
  bool grey = false;   // no colours
  bool alpha = false;  // transparency, also if every pixel is opaque
};

constexpr std::size_t bytes_of(Pixels pixels) { return static_cast<std::size_t>(pixels); }

// Receives a picture row by row: kind() and start() once, then row() `height` times, unless the file turns out to be
// bad on the way. An exception of the sink passes through the decoder, which frees all that it holds.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void kind(PictureKind) {}
  virtual void start(PictureSize size) = 0;
  // `pixels` has 3 * width bytes (4 * width with Pixels::Rgba), valid during the call.
  virtual void row(std::span<const std::uint8_t> pixels) = 0;
};

// Called before memory is allocated that grows with the whole picture; `what` names its use, for a message. The decoder
// returns the memory to the system before it releases the guard. An empty function means no limit. May throw; the
// exception passes through the decoder.
using ChargeMemory = std::function<std::shared_ptr<void>(Bytes bytes, std::string_view what)>;

inline std::shared_ptr<void> charge_if_asked(const ChargeMemory& charge, Bytes bytes, std::string_view what) {
  return charge ? charge(bytes, what) : nullptr;
}

// The limit at which Pillow raises DecompressionBombError (twice PIL.Image.MAX_IMAGE_PIXELS): half a GiB of RGB. Larger
// pictures are refused before any memory is allocated for them.
constexpr std::uint64_t kMaxPixels = 178'956'970;

}  // namespace ullage::image
