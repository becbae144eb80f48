// SPDX-License-Identifier: Apache-2.0
// Uses both installed headers. Prints whether it runs under a budget, and of how many bytes.
#include <ullage/runtime/c_api.h>
#include <ullage/runtime/runtime.h>

#include <cstdio>

int main() {
  ullage_memory memory{};
  ullage_memory_status(&memory);
  ullage_mark_step();
  const bool same = memory.budget == ullage::runtime::memory_status().budget.count;
  std::printf("%d %llu\n", ullage_active(), static_cast<unsigned long long>(memory.budget));
  return same && ullage::runtime::active() == (ullage_active() == 1) ? 0 : 1;
}
