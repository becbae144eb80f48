// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/printable.h"

#include "ullage/base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace ullage::read {
namespace {

// Control characters: C0, DEL, and C1 (U+0080 to U+009F), which some terminals obey too.
bool steers(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::string printable(std::string_view raw, std::size_t most) {
  std::string clean;
  clean.reserve(std::min(raw.size(), most));
  while (!raw.empty()) {
    const Utf8Character first = first_utf8(raw);
    const std::size_t bytes = first.surrogate() ? 0 : first.length;
    const std::string_view one = bytes == 0 ? "\xef\xbf\xbd" : steers(first.code) ? "?" : raw.substr(0, bytes);
    if (clean.size() + one.size() > most) return clean += "...";
    clean += one;
    raw.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return clean;
}

}  // namespace ullage::read
