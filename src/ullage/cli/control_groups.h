// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the control groups of a process say of memory: the limit they set and the processes they killed. Version 1 and
// version 2 of the kernel's interface, side by side where a machine has both; files that are not there say nothing.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace ullage::cli {

// Where the kernel's own file systems stand; tests put trees of their own there.
struct MachineRoots {
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path proc = "/proc";
};

// The folders of the groups this process is in, its own and all their ancestors up to the root of the mount. In a
// container /proc/self/cgroup may name the path as seen from the host, of which only the end (or nothing) exists below
// the mount: the longest end that exists is taken, and the mount's root always.
std::vector<std::filesystem::path> memory_groups(const MachineRoots& roots);

// The least limit that any of the groups sets; none when there is no limit.
std::optional<Bytes> group_limit(const std::vector<std::filesystem::path>& groups);

// How many processes were killed for lack of memory, summed over the groups (a kill may count in several; only a rise
// matters). Where no group can be read, the whole machine's count (/proc/vmstat). None when that is unreadable too.
std::optional<std::uint64_t> oom_kills(const std::vector<std::filesystem::path>& groups, const MachineRoots& roots);

}  // namespace ullage::cli
