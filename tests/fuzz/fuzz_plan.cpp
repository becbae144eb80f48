// SPDX-License-Identifier: Apache-2.0

// Any bytes as a plan's file. The promise under test is a plan or an Error, in bounded time and memory; what was read
// can be written and read again, and is the same then.

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
