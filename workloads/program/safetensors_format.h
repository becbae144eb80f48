// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the reader and the writer of safetensors files: where the digest is in a header.

#include <cstddef>
#include <string_view>

namespace ullage::program {

inline constexpr std::size_t kDigestDigits = 64;
inline constexpr std::string_view kDigestKey = "\"sha256\":\"";

// Returns the position of the digest's digits in a header's text; npos if there are none.
std::size_t digest_place(std::string_view header);

}  // namespace ullage::program
