// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace ullage::cli {
namespace {

std::optional<Bytes> smaller(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

// Without the limit.
MachineMemory read_meminfo(const MachineRoots& roots) {
  MachineMemory memory;
  std::ifstream in(roots.proc / "meminfo");
  std::string name, unit;
  std::uint64_t count = 0;
  while (in >> name >> count) {  // "MemTotal:  24684096 kB": the kernel's kB is 1024 bytes
    std::getline(in, unit);
    if (name == "MemTotal:") memory.total = Bytes{count} * 1024;
    if (name == "MemAvailable:") memory.available = Bytes{count} * 1024;
    if (name == "SwapFree:") memory.swap_free = Bytes{count} * 1024;
  }
  return memory;
}

}  // namespace

MachineMemory read_machine_memory(const MachineRoots& roots) {
  MachineMemory memory = read_meminfo(roots);
  memory.limit = group_limit(memory_groups(roots));
  return memory;
}

Bytes auto_budget(const MachineMemory& memory) {
  const Bytes given = smaller(memory.limit, memory.available).value_or(Bytes{});
  return given - given / 20;
}

std::optional<Bytes> memory_left(const std::vector<std::filesystem::path>& groups, const MachineRoots& roots) {
  const MachineMemory memory = read_meminfo(roots);
  const std::optional<Bytes> machine =
      memory.available ? std::optional(*memory.available + memory.swap_free) : std::nullopt;
  return smaller(machine, group_left(groups, memory.swap_free));
}

std::optional<Bytes> most_there_is(const MachineMemory& memory) { return smaller(memory.total, memory.limit); }

}  // namespace ullage::cli
