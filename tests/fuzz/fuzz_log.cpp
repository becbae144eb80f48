// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a log. The result must be a value or an Error; its texts must be valid UTF-8 on one line.

#include "ullage/read/log/log.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto log = ullage::read::read_log({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!log.ok()) return 0;
  for (const auto& error : log.value().errors) {
    if (error.text.empty() || error.text.size() > 4096 || error.form.empty() || error.line == 0) std::abort();
    if (error.text.find_first_of("\r\n\x1b") != error.text.npos || error.before.size() > 20) std::abort();
    if (error.traceback.size() != error.code.size()) std::abort();
  }
  return 0;
}
