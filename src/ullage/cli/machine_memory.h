// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes this machine gives a program: the meaning of `--memory auto`, and the limit that a stated budget is
// compared with.

#include "ullage/base/bytes.h"
#include "ullage/cli/control_groups.h"

#include <filesystem>
#include <optional>
#include <vector>

namespace ullage::cli {

struct MachineMemory {
  std::optional<Bytes> total;      // MemTotal
  std::optional<Bytes> available;  // MemAvailable: free, or can be freed without loss
  Bytes swap_free;                 // SwapFree
  std::optional<Bytes> limit;      // the smallest limit of the control groups
};

// Reads /proc/meminfo and the control groups. A figure that cannot be read stays empty.
MachineMemory read_machine_memory(const MachineRoots& roots);

// Returns the smaller of the limit and the available memory, less 5 %. If a budget is a little too large, the machine
// swaps or kills the program. Returns zero, which means unlimited, if neither is known.
Bytes auto_budget(const MachineMemory& memory);

// Returns how many bytes can still be taken before the kernel kills something: what is available and what the control
// groups still give, whichever is less. Free swap counts, in a group as far as it may swap. Pages of files count as
// free, because the kernel can drop them. Nothing if neither is known. Takes some 100 us. `groups`: of memory_groups().
std::optional<Bytes> memory_left(const std::vector<std::filesystem::path>& groups, const MachineRoots& roots);

// Returns the largest sensible budget: the smaller of the total memory and the limit. Nothing if neither is known.
std::optional<Bytes> most_there_is(const MachineMemory& memory);

}  // namespace ullage::cli
