// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a plan file. The result must be a plan or an Error, in bounded time and memory. A plan that was
// read must stay the same if it is written and read again.

#include "ullage/plan/file/plan_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ullage::plan::read_plan;
  const auto file = read_plan(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!file.ok()) return 0;
  std::ostringstream again;
  write_plan(file.value(), again);
  const auto same = read_plan(again.str(), "fuzz");
  if (!same.ok() || !(same.value().sites == file.value().sites)) std::abort();
  if (!(same.value().plan.schedule == file.value().plan.schedule)) std::abort();
  return 0;
}
