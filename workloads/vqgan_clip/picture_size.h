// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the size of the picture that the person asked for, and rounds it to one that the network can make.

#include "ullage/base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace ullage::vqgan_clip {

struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

std::string to_string(const PictureSize& size);  // "512x384"

// Parses "512x384" as one word, or two numbers as two words. BadArgument for anything else, and for sides below 1 or
// above 65536.
Result<PictureSize> parse_size(std::span<const std::string> words);

struct UsedSize {
  PictureSize size;
  std::string said;  // a message for the person if `size` is not the size asked for; else empty
};

// Rounds both sides down to whole tokens, squares of `token_side` pixels: 16 for a VQGAN named "f16". The published
// program does so without a message. BadArgument if no token is left.
Result<UsedSize> used_size(const PictureSize& asked, std::int64_t token_side);

}  // namespace ullage::vqgan_clip
