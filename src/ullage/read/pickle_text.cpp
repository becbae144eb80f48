// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/pickle_text.h"

#include <algorithm>
#include <cstdint>

namespace ullage::read {
namespace {

bool continues(char c) { return (std::uint8_t(c) & 0xc0) == 0x80; }

// Bytes of the well-formed character that begins here (RFC 3629, section 4); zero when there is none.
std::size_t character(std::string_view text) {
  const std::uint8_t first = std::uint8_t(text[0]);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  if (!std::ranges::all_of(text.substr(1, bytes - 1), continues)) return 0;
  const std::uint8_t second = std::uint8_t(text[1]);
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool beyond_unicode = first == 0xf4 && second > 0x8f;
  return too_long || surrogate || beyond_unicode ? 0 : bytes;
}

// C0, DEL, and C1 (U+0080 to U+009F), which some terminals obey too.
bool steers(std::string_view one) {
  const std::uint8_t first = std::uint8_t(one[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && std::uint8_t(one[1]) < 0xa0);
}

}  // namespace

std::string printable(std::string_view raw, std::size_t most) {
  std::string clean;
  clean.reserve(std::min(raw.size(), most));
  while (!raw.empty()) {
    const std::size_t bytes = character(raw);
    const std::string_view one = bytes == 0                     ? "\xef\xbf\xbd"
                                 : steers(raw.substr(0, bytes)) ? "?"
                                                                : raw.substr(0, bytes);
    if (clean.size() + one.size() > most) return clean += "...";
    clean += one;
    raw.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return clean;
}

}  // namespace ullage::read
