// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a trace file, then again with corrected checksums, so that the parts are reached. The result must
// be a file or an Error, in bounded time and memory. A file that was read can be written and read again.

#include "../trace/trace_file_repair.h"

#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/meaning/levels.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using ullage::trace::read_trace_file;

ullage::Result<ullage::trace::TraceFile> read(const std::string& content) {
  return read_trace_file(std::as_bytes(std::span(content)), "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  (void)read(std::string(content));
  std::ostringstream repaired;
  ullage::trace::test::repair(content, repaired);
  const auto file = read(repaired.str());
  if (!file.ok()) return 0;
  for (const auto& take : file.value().takes) (void)levels(take.trace);
  std::ostringstream again;
  write_trace_file(file.value(), again);
  if (!read(again.str()).ok()) std::abort();
  return 0;
}
