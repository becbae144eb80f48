// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads UTF-8 one character at a time, from text of foreign files that may hold any bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ullage {

struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // bytes; 0: no valid character begins here

  // Half of a UTF-16 pair. RFC 3629 forbids it, but Python writes such halves into its pickles.
  bool surrogate() const { return code >= 0xd800 && code <= 0xdfff; }
};

// The character at the beginning of `text`, which must not be empty. Rejects overlong forms and codes above 0x10ffff;
// accepts surrogates.
inline Utf8Character first_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff) return {};
  return {code, length};
}

}  // namespace ullage
