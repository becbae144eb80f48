// SPDX-License-Identifier: Apache-2.0
#pragma once

// Repairs lengths, checksums and the count of parts of a damaged trace file, so that the damage inside the parts
// reaches the reader's inner checks. For tests and fuzzing.

#include "ullage/trace/file/file_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <span>
#include <string_view>

namespace ullage::trace::test {

// Divides the content into parts by their lengths. A part that is too long ends with the file.
inline void repair(std::string_view content, std::ostream& out) {
  constexpr std::size_t kHeader = 12, kChecksum = 4;
  PartWriter parts(out);
  std::size_t at = std::min(content.find('\n'), content.size() - 1) + 1;
  while (content.size() - at > kHeader) {
    const std::string_view kind = content.substr(at, 4);
    std::uint64_t size = 0;
    std::memcpy(&size, content.data() + at + 4, sizeof size);
    const std::string_view body = content.substr(at + kHeader, std::min<std::uint64_t>(size, content.size()));
    at = std::min(content.size(), at + kHeader + body.size() + kChecksum);
    if (kind == part::kEnd) break;
    parts.write(kind, body);
  }
  parts.finish();
}

}  // namespace ullage::trace::test
