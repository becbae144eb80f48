// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the reader and the writer of safetensors files share: names of types, and where the digest stands in a header.

#include "dcgan/safetensors.h"

#include <optional>
#include <string>
#include <string_view>

namespace ullage::dcgan {

inline constexpr std::size_t kDigestDigits = 64;
inline constexpr std::string_view kDigestKey = "\"sha256\":\"";

std::string_view name_of(Dtype dtype);
std::optional<Dtype> dtype_named(std::string_view name);

// The place of the digest's digits in a header's text; npos when there are none.
std::size_t digest_place(std::string_view header);

}  // namespace ullage::dcgan
