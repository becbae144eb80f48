// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes the machine gives: what `--memory auto` means, and what a stated budget is held against.

#include "ullage/base/bytes.h"
#include "ullage/cli/control_groups.h"

#include <optional>

namespace ullage::cli {

struct MachineMemory {
  std::optional<Bytes> total;      // MemTotal
  std::optional<Bytes> available;  // MemAvailable: free, or freed at no loss
  std::optional<Bytes> limit;      // the least limit of the control groups
};

// Reads /proc/meminfo and the control groups; what cannot be read stays empty.
MachineMemory read_machine_memory(const MachineRoots& roots);

// The smaller of limit and available memory, less 5 % (of one byte too few, a machine swaps or kills). Zero: unlimited,
// when neither is known.
Bytes auto_budget(const MachineMemory& memory);

// The most a budget can sensibly be: the smaller of all memory and the limit.
std::optional<Bytes> most_there_is(const MachineMemory& memory);

}  // namespace ullage::cli
