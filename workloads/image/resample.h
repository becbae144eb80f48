// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights of Pillow's antialiased resizes along one side, for the outputs inside a window only. Source: Pillow,
// src/libImaging/Resample.c, precompute_coeffs() and normalize_coeffs_8bpc(). They compute in doubles, then in fixed
// point with 22 bits (32 - 8 - 2), so that sums of 8-bit samples stay in 32 bits.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ullage::image {

constexpr int kWeightBits = 32 - 8 - 2;
// Sums start from this, so that dropping the fraction rounds to the nearest.
constexpr std::int32_t kWeightHalf = 1 << (kWeightBits - 1);

// Clamps at both ends: weights sum to one up to rounding, and those of Lanczos may be negative.
inline std::uint8_t to_sample(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

enum class Filter { Bilinear, Lanczos };

// One side of a picture, in pixels: `in` pixels become `out`, of which only the `window` pixels from `first` on are
// wanted.
struct SideResize {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t first = 0;
  std::uint32_t window = 0;
};

// Gives torchvision's Resize(side), then CenterCrop(side), for a side of `length` pixels in a picture whose shorter
// side has `shorter`. `out` may be very long, because only the window is computed.
SideResize square_side(std::uint32_t length, std::uint32_t shorter, std::uint32_t side);

inline SideResize whole_side(std::uint32_t in, std::uint32_t out) { return {in, out, 0, out}; }

class Weights final {
 public:
  Weights() = default;
  explicit Weights(const SideResize& side, Filter filter = Filter::Bilinear);

  // The inputs [begin, end) from which output i of the window is made, and their weights.
  struct Taps {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::span<const std::int32_t> weights;
  };
  Taps operator[](std::size_t i) const {
    const auto [begin, end] = ranges_[i];
    return {begin, end, {&weights_[i * longest_], end - begin}};
  }
  std::size_t size() const { return ranges_.size(); }
  // An upper limit on the inputs of one output.
  std::uint32_t longest() const { return longest_; }

 private:
  struct InputRange {
    std::uint32_t begin, end;
  };
  std::vector<InputRange> ranges_;
  std::vector<std::int32_t> weights_;  // longest_ entries for each output
  std::uint32_t longest_ = 0;
};

}  // namespace ullage::image
