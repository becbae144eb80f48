// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads what the control groups of this process say about memory: their limits and how many processes they killed.
// Reads versions 1 and 2 of the kernel's interface, both if the machine has both. A missing file counts as no
// information.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace ullage::cli {

// Where the kernel's file systems are mounted. Tests put trees of their own there.
struct MachineRoots {
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path proc = "/proc";
};

// Returns the folders of the groups that this process is in: its own and all ancestors up to the root of the mount. In
// a container /proc/self/cgroup may name the path as the host sees it. Then only the end of the path exists below the
// mount, or nothing. So the longest end that exists is taken; the root of the mount is always added.
std::vector<std::filesystem::path> memory_groups(const MachineRoots& roots);

// Returns the smallest limit that any of the groups sets; nothing if there is none.
std::optional<Bytes> group_limit(const std::vector<std::filesystem::path>& groups);

// Returns how many bytes can still be taken before one of the groups reaches its limit, with what it may swap of the
// machine's free swap (in version 1: none). Pages of files do not count as used, because the kernel drops them before
// it kills anything. Nothing if no group sets a limit.
std::optional<Bytes> group_left(const std::vector<std::filesystem::path>& groups, Bytes swap_free);

// Returns how many processes were killed for lack of memory, summed over the groups. One kill may count in several
// groups, so only a rise means something. If no group can be read, returns the count of the whole machine
// (/proc/vmstat); nothing if that cannot be read either.
std::optional<std::uint64_t> oom_kills(const std::vector<std::filesystem::path>& groups, const MachineRoots& roots);

}  // namespace ullage::cli
