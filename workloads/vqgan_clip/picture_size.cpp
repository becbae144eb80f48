// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/picture_size.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace ullage::vqgan_clip {
namespace {

constexpr std::int64_t kLargestSide = 65536;

std::optional<std::int64_t> side(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kLargestSide)
    return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const PictureSize& size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

Result<PictureSize> parse_size(std::span<const std::string> words) {
  std::string_view width, height;
  if (words.size() == 1) {
    const std::string_view word = words[0];
    const std::size_t by = word.find_first_of("xX");
    if (by != std::string_view::npos) width = word.substr(0, by), height = word.substr(by + 1);
  } else if (words.size() == 2) {
    width = words[0], height = words[1];
  }
  const auto w = side(width), h = side(height);
  if (w && h) return PictureSize{*w, *h};
  std::string given;
  for (const std::string& word : words) given += " " + word;
  return Error{Error::Kind::BadArgument,
               "--size" + given + " is not a size: give width and height, as in 512x384, each from 1 to " +
                   std::to_string(kLargestSide),
               ""};
}

Result<UsedSize> used_size(const PictureSize& asked, std::int64_t token_side) {
  const PictureSize size{asked.width / token_side * token_side, asked.height / token_side * token_side};
  const std::string side = std::to_string(token_side);
  if (size.width == 0 || size.height == 0) {
    return Error{Error::Kind::BadArgument,
                 "--size " + to_string(asked) + " is too small: this network makes pictures of whole squares of " +
                     side + "x" + side + " pixels; give at least one",
                 ""};
  }
  if (size == asked) return UsedSize{size, ""};
  return UsedSize{size, "the picture is " + to_string(size) + ", not " + to_string(asked) +
                            ": this network makes whole squares of " + side + "x" + side + " pixels"};
}

}  // namespace ullage::vqgan_clip
