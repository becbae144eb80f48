// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the reader and the writer of safetensors files share: where the digest stands in a header.

#include <cstddef>
#include <string_view>

namespace ullage::program {

inline constexpr std::size_t kDigestDigits = 64;
inline constexpr std::string_view kDigestKey = "\"sha256\":\"";

// The place of the digest's digits in a header's text; npos when there are none.
std::size_t digest_place(std::string_view header);

}  // namespace ullage::program
